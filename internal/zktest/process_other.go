//go:build !linux

package zktest

import (
	"errors"
	"os/exec"
)

// canRunReal is false here: without parent-death signals and SIGSTOP, real
// servers and child processes are left out.
const canRunReal = false

var errLinuxOnly = errors.New("zktest: real servers and child processes need Linux")

type process struct {
	cmd  *exec.Cmd
	done chan struct{}
}

func start(*exec.Cmd) (*process, error) { return nil, errLinuxOnly }
func lockThread()                       {}
func detach(*exec.Cmd)                  {}

func (p *process) pid() int    { return 0 }
func (p *process) alive() bool { return false }
func (p *process) kill()       {}
func (p *process) stop() error { return errLinuxOnly }
func (p *process) cont() error { return errLinuxOnly }

type port struct{ number int }

func reservePort() (*port, error) { return nil, errLinuxOnly }
func (p *port) release()          {}

func freeBytes(string) uint64 { return 0 }
