package powercut

import (
	"bufio"
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Available returns the reason why nothing can be recorded: strace is missing, or is not allowed to trace.
func Available() error {
	if out, err := exec.Command("strace", "-o", os.DevNull, "true").CombinedOutput(); err != nil {
		return fmt.Errorf("strace: %w: %s", err, out)
	}
	return nil
}

// traced has the system calls with which Go programs change files. It also has the calls that are not supported yet, which
// are an error.
const traced = "openat,close,lseek,write,pwrite64,ftruncate,fdatasync,fsync,linkat,renameat,unlinkat," +
	"pwritev,writev,fallocate,copy_file_range,sendfile,splice,rename,renameat2,link,unlink,truncate,msync"

// Run runs a program under strace. It records what the program does to the files in dir, which has the files of d, and what
// it writes to its standard output. The path of dir must have no symbolic links.
func (d *Disk) Run(dir, scratch string, env []string, program string, args ...string) error {
	trace := filepath.Join(scratch, "trace")
	cmd := exec.Command("strace", append([]string{
		"-f", "-xx", "-s", "10000000", "-o", trace, "-e", "signal=none", "-e", "trace=" + traced, "--seccomp-bpf", program,
	}, args...)...)
	cmd.Env = env
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out[max(len(out)-2000, 0):])
	}
	f, err := os.Open(trace)
	if err != nil {
		return err
	}
	made, err := d.parse(f)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	// A descriptor belongs to another file as soon as that has been opened, and to none when its close begins.
	slices.SortStableFunc(made, func(a, b *call) int { return cmp.Compare(a.takesEffect(), b.takesEffect()) })
	s := seen{Disk: d, dir: dir, open: map[int]*opened{}}
	for _, c := range made {
		if err := s.see(c); err != nil {
			return fmt.Errorf("%w: %.200s", err, c.text())
		}
	}
	return nil
}

// call is one system call.
type call struct {
	name         string
	args         []string
	began, ended int
	result       int64
}

func (c *call) text() string {
	return fmt.Sprint(c.name, "(", strings.Join(c.args, ", "), ") = ", c.result)
}

func (c *call) takesEffect() int {
	if c.name == "openat" {
		return c.ended
	}
	return c.began
}

// unknownCall is the name that strace gives to a system call whose number it could not read: the thread was ending, and no
// call was made.
const unknownCall = "???"

// parse returns the calls of a trace in the order in which they began.
func (d *Disk) parse(f *os.File) (made []*call, err error) {
	under := map[string]*call{} // by thread
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<30)
	for lines.Scan() {
		d.Points++
		thread, line, _ := strings.Cut(lines.Text(), " ")
		line = strings.TrimLeft(line, " ")
		c := under[thread]
		if rest, ok := strings.CutPrefix(line, "<... "); ok {
			if delete(under, thread); c == nil {
				return nil, fmt.Errorf("a call ends that has not begun: %.100s", line)
			}
			_, line, _ = strings.Cut(rest, " resumed>")
		} else {
			name, rest, ok := strings.Cut(line, "(")
			if !ok {
				continue // a process has ended
			}
			c = &call{name: name, began: d.Points, ended: Never}
			if line = rest; name != unknownCall {
				made = append(made, c)
			}
		}
		if rest, ok := strings.CutSuffix(line, " <unfinished ...>"); ok {
			c.add(rest)
			under[thread] = c
			continue
		}
		at := strings.LastIndex(line, ") ")
		if at < 0 {
			return nil, fmt.Errorf("a call without an end: %.100s", line)
		}
		c.add(line[:at])
		c.ended = d.Points
		result := strings.Fields(strings.TrimLeft(line[at+2:], " ="))
		if c.result, err = strconv.ParseInt(result[0], 0, 64); err != nil {
			c.result, c.ended = -1, Never // the process has ended
		}
	}
	return made, lines.Err()
}

func (c *call) add(args string) {
	for arg := range strings.SplitSeq(args, ", ") {
		if arg = strings.Trim(arg, ", "); arg != "" {
			c.args = append(c.args, arg)
		}
	}
}

func (c *call) number(i int) (n int64, err error) {
	if i >= len(c.args) {
		return 0, errors.New("an argument is missing")
	}
	return strconv.ParseInt(c.args[i], 0, 64)
}

// bytes decodes an argument in quotes.
func (c *call) bytes(i int) ([]byte, error) {
	if i >= len(c.args) {
		return nil, errors.New("an argument is missing")
	}
	return hex.DecodeString(strings.ReplaceAll(strings.Trim(c.args[i], `"`), `\x`, ""))
}

// seen tracks the files that a process has open.
type seen struct {
	*Disk
	dir  string
	open map[int]*opened
}

type opened struct {
	directory bool
	file      int
	at        int64
}

func (s *seen) see(c *call) error {
	switch c.name {
	case "openat":
		return s.opens(c)
	case "linkat", "renameat", "renameat2", "unlinkat":
		return s.names(c)
	case "rename", "link", "unlink", "truncate":
		return errors.New("an unknown call")
	}
	which := 0
	if c.name == "copy_file_range" || c.name == "splice" {
		which = 2 // the descriptor that is written
	}
	n, err := c.number(which)
	if err != nil {
		return err
	}
	fd := int(n)
	o := s.open[fd]
	switch {
	case c.name == "close":
		delete(s.open, fd)
		return nil
	case o == nil && c.name == "write" && fd == 1:
		return s.output(c)
	case o == nil:
		return nil
	case o.directory && c.name == "fsync":
		s.event(c, Event{Kind: FlushDir})
		return nil
	case c.name == "fsync" || c.name == "fdatasync":
		s.event(c, Event{Kind: Flush, File: o.file, FD: fd})
		return nil
	case c.name == "lseek":
		o.at = c.result
		return nil
	case c.name == "ftruncate":
		to, err := c.number(1)
		s.event(c, Event{Kind: Truncate, File: o.file, FD: fd, At: to})
		return err
	case c.name == "write" || c.name == "pwrite64":
		return s.write(c, fd, o)
	}
	return errors.New("an unknown call")
}

// event records the effect of a call, unless the call has failed.
func (s *seen) event(c *call, e Event) {
	if c.result >= 0 || c.ended == Never {
		e.Began, e.Ended = c.began, c.ended
		s.Events = append(s.Events, &e)
	}
}

func (s *seen) output(c *call) error {
	text, err := c.bytes(1)
	for line := range strings.Lines(string(text)) {
		s.event(c, Event{Kind: Output, Data: []byte(strings.TrimSuffix(line, "\n"))})
	}
	return err
}

func (s *seen) write(c *call, fd int, o *opened) error {
	data, err := c.bytes(1)
	if err != nil {
		return err
	}
	at := o.at
	if c.name == "pwrite64" {
		if at, err = c.number(3); err != nil {
			return err
		}
	} else {
		o.at += int64(len(data))
	}
	if c.ended != Never && int64(len(data)) != c.result {
		return fmt.Errorf("%d bytes of a write were traced", len(data))
	}
	s.event(c, Event{Kind: Write, File: o.file, FD: fd, At: at, Data: data})
	return nil
}

// name returns the name in the directory for an argument: "." for the directory itself, and "" for a path elsewhere.
func (s *seen) name(c *call, i int) (string, error) {
	path, err := c.bytes(i)
	if err != nil || c.args[i-1] != "AT_FDCWD" {
		return "", err
	}
	name, err := filepath.Rel(s.dir, string(path))
	if err != nil || strings.Contains(name, "/") || name == ".." {
		return "", nil
	}
	return name, nil
}

func (s *seen) opens(c *call) error {
	name, err := s.name(c, 1)
	if err != nil || c.result < 0 {
		return err
	}
	fd := int(c.result)
	if delete(s.open, fd); name == "" {
		return nil
	}
	if name == "." {
		s.open[fd] = &opened{directory: true}
		return nil
	}
	file, there := s.now[name]
	if !there {
		file = len(s.files)
		s.files = append(s.files, nil)
		s.now[name] = file
		s.event(c, Event{Kind: Create, File: file, Name: name})
	}
	s.open[fd] = &opened{file: file}
	flags := strings.Split(c.args[2], "|")
	if slices.Contains(flags, "O_APPEND") {
		return errors.New("a file is appended to")
	}
	if there && slices.Contains(flags, "O_TRUNC") {
		s.event(c, Event{Kind: Truncate, File: file, FD: fd})
	}
	return nil
}

// names records links, renames and removals.
func (s *seen) names(c *call) error {
	name, err := s.name(c, 1)
	if err != nil || c.result < 0 || name == "" {
		return err
	}
	file, there := s.now[name]
	if !there {
		return fmt.Errorf("there is no file %q", name)
	}
	e := Event{Kind: Remove, File: file, Name: name}
	if c.name != "unlinkat" {
		if e.To, err = s.name(c, 3); err != nil || e.To == "" {
			return errors.Join(err, errors.New("a file leaves the directory"))
		}
		e.Kind = Rename
		s.now[e.To] = file
	}
	if c.name == "linkat" {
		e.Kind = Link
	} else {
		delete(s.now, name)
	}
	s.event(c, e)
	return nil
}
