package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/examples/bench/internal/child"
	"github.com/keelson-dev/keelson/examples/bench/internal/proc"
)

// These are the columns of NEWCOMER.md.
const (
	readmeProgram = "README's program"
	benchPeer     = "examples/bench/apiserver"
	samplePeer    = "sample-apiserver"
)

// sampleVersion is the version of k8s.io/sample-apiserver that is measured.
const sampleVersion = "v0.37.1"

// These are the rows of NEWCOMER.md.
const (
	rowKinds     = "kinds"
	rowWritten   = "lines of Go, written"
	rowGenerated = "lines of Go, generated"
	rowPackages  = "packages linked"
	rowThird     = "of these, of third parties"
	rowLibrary   = "of these, of this library"
	rowStandard  = "of these, of the standard library"
	rowModules   = "modules linked"
	rowBinary    = "binary"
	rowStripped  = "stripped binary"
	rowProcesses = "processes"
	rowReady     = "start to ready"
	rowReadyEtcd = "start to ready, etcd included"
	rowIdle      = "resident when idle"
	rowIdleEtcd  = "resident when idle, etcd included"
)

// bound is a figure that is wanted for the README's program.
type bound struct {
	row    string
	less   float64
	met    bool   // the table meets the bound, and every change must
	reason string // why the table does not
}

func wanted() []bound {
	return []bound{
		{row: rowWritten, less: 31, met: true},
		{row: rowPackages, less: 400, reason: "apimachinery's managedfields, which server-side apply is made of, needs 349 packages alone; this library has 42"},
		{row: rowThird, less: 180, reason: "logs (zap) and metrics (Prometheus) are parts of each server, and have 27 of them"},
		{row: rowStripped, less: 22 << 20, met: true},
	}
}

// TestNewcomer compares what the README's program costs with NEWCOMER.md. With KEELSON_UPDATE set it measures all programs and writes
// that file instead, which takes some minutes and needs k8s.io/sample-apiserver and what it requires in the module cache.
func TestNewcomer(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds programs")
	}
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		t.Skip("the table is of linux/amd64")
	}
	const file = "NEWCOMER.md"
	dir := newcomerModule(t)
	got := sizes(t, dir, ".", readmeProgram, filepath.Join(dir, "newcomer"), os.Getenv("KEELSON_UPDATE") != "")
	for _, w := range wanted() {
		if w.met && got[w.row] >= w.less {
			t.Errorf("%s: %s, wanted less than %s", w.row, show(w.row, got[w.row]), show(w.row, w.less))
		}
	}
	if os.Getenv("KEELSON_UPDATE") != "" {
		writeNewcomers(t, file, dir, got)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for row, tolerance := range map[string]float64{
		rowWritten: 0, rowGenerated: 0, rowPackages: 0.01, rowThird: 0.01, rowLibrary: 0.05, rowStandard: 0.02, rowModules: 0.02, rowStripped: 0.01,
	} {
		want, err := tableFigure(string(text), row)
		if err != nil {
			t.Error(err)
			continue
		}
		if off := got[row] - want; off > want*tolerance || -off > want*tolerance {
			t.Errorf("%s: %s, and %s has %s: KEELSON_UPDATE=1 go test -run '^TestNewcomer$' -timeout 1h ./examples/bench makes it anew",
				row, show(row, got[row]), file, show(row, want))
		}
	}
}

// newcomerModule makes a module with the README's program, outside any workspace.
func newcomerModule(t *testing.T) string {
	t.Helper()
	checkout, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":  "module example.org/newcomer\n\ngo 1.26.0\n\nrequire github.com/keelson-dev/keelson v0.0.0\n\nreplace github.com/keelson-dev/keelson => " + checkout + "\n",
		"go.sum":  readText(t, filepath.Join(checkout, "go.sum")),
		"main.go": readText(t, filepath.Join(checkout, "examples/e2e/testdata/newcomer/main.go")),
	} {
		writeText(t, filepath.Join(dir, name), text)
	}
	return dir
}

// goCommand runs the go command in dir, without a workspace, and returns its stdout.
func goCommand(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off")
	if dir != "." { // not the bench itself
		cmd.Env = append(cmd.Env, "GOFLAGS=-mod=mod")
	}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return string(out)
}

// sizes returns the figures of a program that are not measured by running it. The program is the package pkg of the module in dir, and
// is built stripped as file; if whole is set also as file.whole, with symbols.
func sizes(t *testing.T, dir, pkg, program, file string, whole bool) map[string]float64 {
	t.Helper()
	figures := map[string]float64{}
	modules := map[string]bool{}
	list := json.NewDecoder(strings.NewReader(goCommand(t, dir, "list", "-deps", "-json=ImportPath,Standard,Module,Dir,GoFiles", pkg)))
	for {
		var p struct {
			ImportPath, Dir string
			Standard        bool
			GoFiles         []string
			Module          *struct{ Path string }
		}
		if err := list.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		figures[rowPackages]++
		if p.Module != nil {
			modules[p.Module.Path] = true
		}
		const library, bench = "github.com/keelson-dev/keelson", "github.com/keelson-dev/keelson/examples/bench"
		switch {
		case p.Standard:
			figures[rowStandard]++
		case p.Module.Path == library:
			figures[rowLibrary]++
		case p.Module.Path == "example.org/newcomer", p.Module.Path == "k8s.io/sample-apiserver",
			p.Module.Path == bench && !strings.HasSuffix(p.ImportPath, "/internal/program"): // the flags and reports of the bench
			for _, name := range p.GoFiles {
				n, generated := goLines(t, filepath.Join(p.Dir, name))
				if generated {
					figures[rowGenerated] += float64(n)
				} else {
					figures[rowWritten] += float64(n)
				}
			}
		case p.Module.Path != bench:
			figures[rowThird]++
		}
	}
	figures[rowModules] = float64(len(modules))
	build := func(row, out string, args ...string) {
		goCommand(t, dir, append(append([]string{"build", "-trimpath", "-o", out}, args...), pkg)...)
		info, err := os.Stat(out)
		if err != nil {
			t.Fatal(err)
		}
		figures[row] = float64(info.Size())
	}
	build(rowStripped, file, "-ldflags", "-s -w")
	if whole {
		build(rowBinary, file+".whole")
	}
	t.Logf("%s: %v", program, figures)
	return figures
}

// goLines returns the number of lines of a Go file that have more than comments, and whether it was generated. The deep copies of the
// bench's widgets are written as a generator writes them.
func goLines(t *testing.T, path string) (n int, generated bool) {
	t.Helper()
	text := []byte(readText(t, path))
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, path, text, parser.ParseComments|parser.PackageClauseOnly)
	if err != nil {
		t.Fatal(err)
	}
	file := set.AddFile(path, -1, len(text))
	var s scanner.Scanner
	s.Init(file, text, nil, 0)
	lines := map[int]bool{}
	for {
		pos, tok, literal := s.Scan()
		if tok == token.EOF {
			return len(lines), ast.IsGenerated(parsed) || filepath.Base(path) == "deepcopy.go"
		}
		if tok == token.SEMICOLON && literal == "\n" {
			continue
		}
		for i := range 1 + strings.Count(literal, "\n") {
			lines[file.Line(pos)+i] = true
		}
	}
}

// writeNewcomers measures all programs and writes the table.
func writeNewcomers(t *testing.T, file, dir string, ours map[string]float64) {
	t.Helper()
	began := time.Now()
	ours[rowKinds], ours[rowProcesses] = 1, 1
	ours[rowReady], ours[rowIdle] = runReadme(t, dir)

	peerDir := t.TempDir()
	bench := sizes(t, ".", "./apiserver", benchPeer, filepath.Join(peerDir, "apiserver"), true)
	bench[rowKinds], bench[rowProcesses] = 1, 2
	runPeer(t, peerDir, bench)

	sampleDir := sampleModule(t)
	sample := sizes(t, sampleDir, ".", samplePeer, filepath.Join(peerDir, "sample"), true)
	sample[rowKinds], sample[rowProcesses] = 2, 3

	machine, err := proc.Describe(peerDir)
	if err != nil {
		t.Fatal(err)
	}
	columns := []map[string]float64{ours, bench, sample}
	var b strings.Builder
	fmt.Fprintf(&b, "# What a newcomer measures\n\nMade by `KEELSON_UPDATE=1 go test -run '^TestNewcomer$' -timeout 1h ./examples/bench` on %s, on this machine:\n\n",
		began.UTC().Format("2006-01-02 15:04 UTC"))
	fmt.Fprintf(&b, "| processor | cores | memory | kernel | Go |\n| --- | ---: | ---: | ---: | ---: |\n| %s | %d | %.1f GiB | %s | %s %s/%s |\n\n",
		machine.CPU, machine.Cores, float64(machine.Memory)/(1<<30), machine.Kernel, machine.Go, runtime.GOOS, runtime.GOARCH)
	fmt.Fprintf(&b, "%s\n\n", strings.Join([]string{
		"* **README's program** serves one kind and keeps its objects in a file. It makes its certificates, an administrator and a kubeconfig.",
		"* **examples/bench/apiserver** serves one kind with k8s.io/apiserver. It keeps its objects in etcd, which is a second process",
		"  (examples/bench/etcd, one member). Its OpenAPI definitions are written by hand; its own flags and reports are not counted as lines.",
		"* **sample-apiserver** is k8s.io/sample-apiserver " + sampleVersion + ", with two kinds, one of them in two versions. It needs etcd and a kube-apiserver, which",
		"  authenticates and authorizes its users, so that it is not ready alone, and was not run.",
	}, "\n"))
	b.WriteString("|  | " + strings.Join([]string{readmeProgram, benchPeer, samplePeer}, " | ") + " |\n| --- | ---: | ---: | ---: |\n")
	for _, row := range []string{
		rowKinds, rowWritten, rowGenerated, rowPackages, rowThird, rowLibrary, rowStandard, rowModules, rowBinary, rowStripped, rowProcesses,
		rowReady, rowReadyEtcd, rowIdle, rowIdleEtcd,
	} {
		fmt.Fprintf(&b, "| %s |", row)
		for i, c := range columns {
			v, ok := c[row]
			switch {
			case i == 0 && (row == rowReadyEtcd || row == rowIdleEtcd):
				b.WriteString(" no etcd |")
			case !ok && (row == rowGenerated || row == rowLibrary):
				b.WriteString(" 0 |")
			case !ok:
				b.WriteString(" – |")
			default:
				fmt.Fprintf(&b, " %s |", show(row, v))
			}
		}
		b.WriteByte('\n')
	}
	b.WriteString("\n" + strings.Join([]string{
		"Lines are those of the program's own linked packages, without empty lines, comments and tests; generated are those of files that say so,",
		"and the deep copies of the bench's widgets. The widget of the bench has 7 fields and that of the README 3. Packages are those of",
		"`go list -deps`. Binaries are built with -trimpath, the stripped ones with -ldflags \"-s -w\"; a MiB is 1,048,576 bytes. Ready means that the",
		"process says that /readyz answers 200, on empty storage, with the making of certificates; it is the median of 5 starts. The memory is VmRSS",
		"10 s after that without requests, the median of 3 starts. Other jobs may have run on the machine: compare the figures of one row.",
	}, "\n") + "\n\n## Wanted\n\n| README's program | wanted | is |  |\n| --- | ---: | ---: | --- |\n")
	for _, w := range wanted() {
		verdict := "met"
		if ours[w.row] >= w.less {
			verdict = "**missed**: " + w.reason
		}
		fmt.Fprintf(&b, "| %s | < %s | %s | %s |\n", w.row, show(w.row, w.less), show(w.row, ours[w.row]), verdict)
	}
	writeText(t, file, b.String())
}

// These are the numbers of starts of each program, and the time without requests.
const (
	readyStarts = 5
	idleStarts  = 3
	idleTime    = 10 * time.Second
)

// runReadme returns the seconds until the README's program is ready, and its resident bytes when idle.
func runReadme(t *testing.T, dir string) (ready, idle float64) {
	t.Helper()
	address := freeAddress(t)
	main := filepath.Join(dir, "main.go")
	source := readText(t, main)
	if !strings.Contains(source, "127.0.0.1:6443") {
		t.Fatal("the program does not listen on 127.0.0.1:6443")
	}
	writeText(t, main, strings.Replace(source, "127.0.0.1:6443", address, 1))
	program := filepath.Join(dir, "moved")
	goCommand(t, dir, "build", "-trimpath", "-ldflags", "-s -w", "-o", program, ".")
	var times, memory []float64
	for i := range readyStarts {
		at := t.TempDir()
		cmd := exec.CommandContext(t.Context(), program)
		cmd.Dir = at
		stdout, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		line, err := bufio.NewReader(stdout).ReadString('\n')
		times = append(times, time.Since(began).Seconds())
		if err != nil || !strings.HasPrefix(line, "ready") {
			t.Errorf("the program says %q, %v", line, err)
		} else if i < idleStarts {
			time.Sleep(idleTime)
			memory = append(memory, resident(t, cmd.Process.Pid))
		}
		if err := errors.Join(cmd.Process.Signal(os.Interrupt), cmd.Wait()); err != nil {
			t.Error(err)
		}
	}
	return median(times), median(memory)
}

// runPeer adds the figures of the running server of the bench, and of its etcd.
func runPeer(t *testing.T, dir string, figures map[string]float64) {
	t.Helper()
	etcd, err := child.Build(t.Context(), dir, "etcd", true)
	if err != nil {
		t.Fatal(err)
	}
	family := child.NewFamily()
	defer family.Close()
	all := map[string][]float64{}
	for i := range readyStarts {
		store, err := family.Start(t.Context(), child.Command{Name: "etcd", Program: etcd, Args: []string{"-data", t.TempDir()}})
		if err != nil {
			t.Fatal(err)
		}
		server, err := family.Start(t.Context(), child.Command{
			Name: benchPeer, Program: filepath.Join(dir, "apiserver"), Args: []string{"-addr", freeAddress(t), "-token", "secret", "-etcd", store.URL},
		})
		if err != nil {
			t.Fatal(err)
		}
		all[rowReady] = append(all[rowReady], server.Ready.Seconds())
		all[rowReadyEtcd] = append(all[rowReadyEtcd], (store.Ready + server.Ready).Seconds())
		if i < idleStarts {
			time.Sleep(idleTime)
			one := resident(t, server.PID)
			all[rowIdle] = append(all[rowIdle], one)
			all[rowIdleEtcd] = append(all[rowIdleEtcd], one+resident(t, store.PID))
		}
		if err := errors.Join(server.Stop(t.Context()), store.Stop(t.Context())); err != nil {
			t.Error(err)
		}
	}
	for row, values := range all {
		figures[row] = median(values)
	}
}

// sampleModule copies k8s.io/sample-apiserver from the module cache, where it must be.
func sampleModule(t *testing.T) string {
	t.Helper()
	cache := strings.TrimSpace(goCommand(t, ".", "env", "GOMODCACHE"))
	dir := t.TempDir()
	const module = "k8s.io/sample-apiserver@" + sampleVersion
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(cache, module))); err != nil {
		t.Fatalf("%v; go mod download %s gets it, once", err, module)
	}
	for _, name := range []string{"go.mod", "go.sum"} { // which go -mod=mod may write
		if err := os.Chmod(filepath.Join(dir, name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func resident(t *testing.T, pid int) float64 {
	t.Helper()
	m, err := proc.MemoryOf(pid)
	if err != nil {
		t.Fatal(err)
	}
	return float64(m.Resident)
}

func freeAddress(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ln.Close() }()
	return ln.Addr().String()
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	if len(sorted) == 0 {
		return 0
	}
	return sorted[len(sorted)/2]
}

// show returns a figure as the table has it.
func show(row string, v float64) string {
	switch row {
	case rowBinary, rowStripped:
		return fmt.Sprintf("%.2f MiB", v/(1<<20))
	case rowReady, rowReadyEtcd:
		return fmt.Sprintf("%.0f ms", v*1e3)
	case rowIdle, rowIdleEtcd:
		return fmt.Sprintf("%.1f MiB", v/(1<<20))
	default:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
}

// tableFigure returns the figure of the README's program in a row of the table.
func tableFigure(table, row string) (float64, error) {
	m := regexp.MustCompile(`(?m)^\| ` + regexp.QuoteMeta(row) + ` \| ([0-9.]+)( MiB)? \|`).FindStringSubmatch(table)
	if m == nil {
		return 0, fmt.Errorf("the table has no figure for %s", row)
	}
	v, err := strconv.ParseFloat(m[1], 64)
	if m[2] != "" {
		v *= 1 << 20
	}
	return v, err
}

func readText(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func writeText(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
