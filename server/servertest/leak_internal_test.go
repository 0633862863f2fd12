package servertest

import (
	"strconv"
	"strings"
)

// Stacks describes the goroutines that are the server's.
func (s *Server) Stacks() string { return labelled(s.label) }

// Goroutines counts them: each group of them that are alike begins with their number.
func (s *Server) Goroutines() (n int) {
	for group := range strings.SplitSeq(s.Stacks(), "\n\n") {
		number, _, _ := strings.Cut(group, " ")
		if i, err := strconv.Atoi(strings.TrimSpace(number)); err == nil {
			n += i
		}
	}
	return n
}
