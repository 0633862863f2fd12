//go:build !linux

package child

import "syscall"

// attributes are none where the kernel does not end the children of the dead.
func attributes() *syscall.SysProcAttr { return nil }
