package child

import "syscall"

// attributes make the kernel end a child when the thread that started it ends; the thread of a Family ends with the process. The
// child is in its own process group, so that an interrupt of the terminal does not reach it: the family ends its children in
// order.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
