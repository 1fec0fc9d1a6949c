//go:build !race

package coordtest

func onOneProcessor() (restore func()) { return func() {} }
