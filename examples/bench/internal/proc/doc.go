// Package proc reads what Linux says of processes and of the machine: proc(5), and the time of an fsync.
package proc
