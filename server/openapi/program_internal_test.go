package openapi

import (
	"bytes"
	"io"
	"runtime/debug"
	"strings"
	"testing"
)

// The id of a program of published modules depends on the modules. Another release of a module gives another id.
func TestModulesID(t *testing.T) {
	t.Parallel()
	const path = "example.com/library"
	build := func(change func(info *debug.BuildInfo)) string {
		info := &debug.BuildInfo{GoVersion: "go1.26", Main: debug.Module{Path: "example.com/main"}, Deps: []*debug.Module{
			{Path: path, Version: "v1.2.3", Sum: "h1:a"}, {Path: "k8s.io/apimachinery", Version: "v0.37.0", Sum: "h1:b"},
		}}
		change(info)
		return modulesID(info, path)
	}
	one := build(func(*debug.BuildInfo) {})
	if one == "" || one != build(func(*debug.BuildInfo) {}) {
		t.Errorf("%q", one)
	}
	for name, change := range map[string]func(*debug.BuildInfo){
		"Go":       func(i *debug.BuildInfo) { i.GoVersion = "go1.27" },
		"version":  func(i *debug.BuildInfo) { i.Deps[1].Version = "v0.37.1" },
		"sum":      func(i *debug.BuildInfo) { i.Deps[0].Sum = "h1:x" },
		"replaced": func(i *debug.BuildInfo) { i.Deps[0].Replace = &debug.Module{Path: "x", Version: "v1", Sum: "h1:x"} },
		"more": func(i *debug.BuildInfo) {
			i.Deps = append(i.Deps, &debug.Module{Path: "y", Version: "v1", Sum: "h1:y"})
		},
	} {
		if other := build(change); other == "" || other == one {
			t.Errorf("%s: %q", name, other)
		}
	}
	for name, change := range map[string]func(*debug.BuildInfo){
		"no sum":            func(i *debug.BuildInfo) { i.Deps[1].Sum = "" },
		"a folder":          func(i *debug.BuildInfo) { i.Deps[0].Replace = &debug.Module{Path: "../library"} },
		"it is the program": func(i *debug.BuildInfo) { i.Deps = i.Deps[1:] },
	} {
		if other := build(change); other != "" {
			t.Errorf("%s: %q", name, other)
		}
	}
}

// The id of a file is its build ID, or else a hash of its contents.
func TestFileID(t *testing.T) {
	t.Parallel()
	id := func(text string) string { return fileID(strings.NewReader(text)) }
	const elf = "\x7fELF....\x04\x00\x00\x00\x09\x00\x00\x00\x04\x00\x00\x00Go\x00\x00aa/b/c/dd..."
	const marked = "MZ....\xff Go build ID: \"aa/b/c/dd\"\n \xff..."
	for name, c := range map[string]struct{ text, want string }{"ELF": {elf, "build aa/b/c/dd"}, "marked": {marked, "build aa/b/c/dd"}} {
		if got := id(c.text); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	for name, text := range map[string]string{
		"none": "text", "no contents": strings.ReplaceAll(marked, "c/dd", "c/"), "redacted": strings.ReplaceAll(marked, "aa/b/c/dd", ""),
		"cut off": marked[:len(marked)-8], "no end": elf[:len(elf)-8], "short": "\x04\x00\x00\x00Go\x00\x00",
		"long": strings.Repeat("x", 3*headBytes),
	} {
		got := id(text)
		if !strings.HasPrefix(got, "file ") || got == id(text+"x") || got != id(text) {
			t.Errorf("%s: %q, and %q", name, got, id(text+"x"))
		}
	}
	if got := id(""); got != "" {
		t.Errorf("of nothing: %q", got)
	}
	if got := programID(); got == "" || strings.HasPrefix(got, "file ") {
		t.Errorf("this program is %q, want its build ID", got)
	}
	var seeker io.ReadSeeker = bytes.NewReader([]byte("text"))
	if a, b := fileID(seeker), id("text"); a != b {
		t.Errorf("%q, %q", a, b)
	}
}
