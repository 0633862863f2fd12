package child

import "syscall"

// attributes let the kernel end a child when the thread that started it is gone, which Family's is when the process
// is. A group of its own keeps an interrupt of the terminal from the child: the family ends it in its order.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
