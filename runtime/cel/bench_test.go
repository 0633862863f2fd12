package cel_test

import (
	"context"
	"testing"

	celgo "github.com/google/cel-go/cel"

	"github.com/keelson-dev/keelson/runtime/cel"
)

func BenchmarkNew(b *testing.B) {
	for b.Loop() {
		if _, err := cel.New(cel.Compatible); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkExtend(b *testing.B) {
	base, err := cel.New(cel.Compatible)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := base.Extend(variables()); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCompile(b *testing.B) {
	env := environment(b, cel.Compatible)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := env.Compile("self.i > 5 && self.s.startsWith('h') && self.ls.all(e, e.size() > 0)", celgo.BoolType); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEval(b *testing.B) {
	program, err := environment(b, cel.Compatible).Compile("self.i > 5 && self.s.startsWith('h')", celgo.BoolType)
	if err != nil {
		b.Fatal(err)
	}
	vars, ctx := activation(b), context.Background()
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := program.Eval(ctx, vars, cel.MaxObjectCost); err != nil {
			b.Fatal(err)
		}
	}
}
