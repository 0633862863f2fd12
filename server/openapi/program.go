package openapi

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"reflect"
	"runtime/debug"
	"strings"
)

// programID returns an id of the program. Two programs with the same id make the same documents from the same description. For a
// program that was built from published modules, the id identifies the modules, on any platform. For any other program, it
// identifies the program file. It is "" if there is no such id.
func programID() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		if id := modulesID(info, modulePath()); id != "" {
			return id
		}
	}
	path, err := os.Executable()
	if err != nil {
		return ""
	}
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	return fileID(f)
}

// modulePath returns the path of the module of this package.
func modulePath() string {
	path, _, _ := strings.Cut(reflect.TypeFor[Service]().PkgPath(), "/server/")
	return path
}

// modulesID returns an id of the modules of a program and of its Go release. It returns "" if a module has no checksum, or if the
// module path is not among them.
func modulesID(info *debug.BuildInfo, path string) string {
	h, found := sha256.New(), false
	fmt.Fprintln(h, info.GoVersion)
	for _, m := range info.Deps {
		found = found || m.Path == path
		if m.Replace != nil {
			m = m.Replace
		}
		if m.Sum == "" {
			return ""
		}
		fmt.Fprintln(h, m.Path, m.Version, m.Sum)
	}
	if !found {
		return ""
	}
	return fmt.Sprintf("modules %x", h.Sum(nil))
}

// headBytes is how many bytes of a program are searched for the build ID, which is at the beginning:
// https://pkg.go.dev/cmd/internal/buildid.
const headBytes = 64 << 10

// fileID returns an id of a program's file: the build ID of the linker, which contains a hash of the program's contents. If there
// is none, it is a hash of the file.
func fileID(f io.ReadSeeker) string {
	head := make([]byte, headBytes)
	n, err := io.ReadFull(f, head)
	if err != nil && n == 0 {
		return ""
	}
	if id := buildID(head[:n]); id != "" {
		return "build " + id
	}
	h := sha256.New()
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return ""
	}
	if _, err := io.Copy(h, f); err != nil {
		return ""
	}
	return fmt.Sprintf("file %x", h.Sum(nil))
}

// buildID returns the build ID. It is in a note of an ELF file (name "Go", type 4, after the two lengths), or in the text with
// the marks of the linker. It has four parts; the last is a hash of the contents.
func buildID(head []byte) string {
	whole := func(id []byte) string {
		if bytes.Count(id, []byte("/")) != 3 || bytes.HasSuffix(id, []byte("/")) {
			return ""
		}
		return string(id)
	}
	if _, rest, ok := bytes.Cut(head, []byte("\x04\x00\x00\x00Go\x00\x00")); ok {
		at := len(head) - len(rest) - len("\x04\x00\x00\x00Go\x00\x00") - 4
		if at >= 0 {
			size := int(head[at]) | int(head[at+1])<<8
			if size <= len(rest) {
				if id := whole(rest[:size]); id != "" {
					return id
				}
			}
		}
	}
	_, rest, ok := bytes.Cut(head, []byte("\xff Go build ID: \""))
	if !ok {
		return ""
	}
	id, _, ok := bytes.Cut(rest, []byte("\"\n \xff"))
	if !ok {
		return ""
	}
	return whole(id)
}
