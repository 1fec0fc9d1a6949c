//go:build !race

package virtualtime

func onOneProcessor() (restore func()) { return func() {} }
