package servertest

import (
	"strconv"
	"strings"
)

// Stacks describes the goroutines of the server.
func (s *Server) Stacks() string { return labelled(s.label) }

// Goroutines counts the goroutines of the server. In the profile, equal goroutines are one entry with their number.
func (s *Server) Goroutines() (n int) {
	for group := range strings.SplitSeq(s.Stacks(), "\n\n") {
		number, _, _ := strings.Cut(group, " ")
		if i, err := strconv.Atoi(strings.TrimSpace(number)); err == nil {
			n += i
		}
	}
	return n
}
