// Package child builds this module's programs and runs them as child processes.
//
// A Family starts the children and ends all of them when it is closed; on Linux the kernel ends them also when the
// parent dies without closing. A Child speaks the small language that all programs of this module share: on stdout
// a line "ready URL" once it serves; on SIGUSR1 a line of JSON about its heap; SIGUSR2 begins and ends a CPU profile;
// SIGTERM ends it.
package child
