// Package child builds this module's programs and runs them as child processes.
//
// A Family starts the children and ends all of them when it is closed. On Linux the kernel also ends them when the parent dies
// without closing the family. A Child uses the protocol of all programs of this module: on stdout a line "ready URL" when it
// serves; on SIGUSR1 a line of JSON about its heap; SIGUSR2 begins and ends a CPU profile; SIGTERM ends it.
package child
