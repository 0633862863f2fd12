// Package proc reads data of Linux about processes and the machine: proc(5), and the time of an fsync.
package proc
