package abac

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/keelson-dev/keelson/runtime/excerpt"
)

const (
	// MaxFile is the size of the largest file, in bytes.
	MaxFile = 3 << 20
	// MaxLine is the length of the longest line, in bytes.
	MaxLine = 1<<16 - 1
)

// ReadFile reads a policy file. The error names the file and the line, in the words of kube-apiserver.
func ReadFile(path string) (*Policy, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // it was only read
	content, err := io.ReadAll(io.LimitReader(file, MaxFile+1))
	if err != nil {
		return nil, fmt.Errorf("error reading policy file %s: %w", path, err)
	}
	return Parse(content, path)
}

// Parse is ReadFile for the content of the file at a path.
func Parse(content []byte, path string) (*Policy, error) {
	if len(content) > MaxFile {
		return nil, fmt.Errorf("error reading policy file %s: it has more than %d bytes", path, MaxFile)
	}
	p := &Policy{byUser: map[string][]int{}, byGroup: map[string][]int{}}
	number := 0
	for line := range bytes.Lines(content) {
		number++
		line = bytes.TrimSuffix(line, []byte("\n"))
		if len(line) > MaxLine {
			return nil, fmt.Errorf("error reading policy file %s: %w", path, errTooLong)
		}
		line = bytes.TrimSuffix(line, []byte("\r"))
		if start := bytes.TrimSpace(line); len(start) == 0 || start[0] == '#' {
			continue
		}
		rule, unversioned, err := readLine(line)
		if err != nil {
			return nil, fmt.Errorf("error reading policy file %s, line %d: %s: %w", path, number, excerpt.Of(string(line), excerpt.Text), err)
		}
		p.unversioned = p.unversioned || unversioned
		p.add(rule)
	}
	return p, nil
}

// errTooLong has the words of package bufio, which kube-apiserver shows.
var errTooLong = errors.New("bufio.Scanner: token too long")
