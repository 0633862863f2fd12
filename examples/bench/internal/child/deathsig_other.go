//go:build !linux

package child

import "syscall"

// attributes returns nil: this system does not end the children of a process that has died.
func attributes() *syscall.SysProcAttr { return nil }
