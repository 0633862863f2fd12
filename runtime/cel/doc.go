// Package cel compiles and evaluates the expressions of Kubernetes: the Common Expression Language (CEL) with the functions,
// types, costs and limits that kube-apiserver adds to it.
//
// Rules in custom resources, admission policies, match conditions, and the configuration of authentication and authorization are
// written in this language. The package reads no clock, starts no goroutine and keeps no state between calls.
//
// An [Environment] is the set of names that an expression may use: the language of one [Version], and variables with a [DeclType]
// each. [Environment.Compile] makes a [Program] of an expression and estimates its cost. [Program.Eval] evaluates the program
// with values.
//
//	env, err := cel.New(cel.Compatible)                        // once per process: slow
//	self := cel.Object("", fields).Named("selfType")           // objects need a name
//	env, err = env.Extend([]cel.Variable{{Name: "self", Type: self}, {Name: "oldSelf", Type: self}})
//	program, err := env.Compile("self.replicas <= 5", celgo.BoolType)
//	if program.Cost().Max > ... {}                             // refuse expressions that may be too expensive
//	result, budget, err := program.Eval(ctx, values, budget)   // budget begins as cel.MaxObjectCost
//
// Values are cel-go values (ref.Val), and a cel-go Activation resolves variables. The caller implements the values that read its
// objects. An expression may read a field whose name is a keyword by either of two names, for example "namespace" and
// "__namespace__", so the value must accept both names.
//
// New expressions are compiled with [Compatible], stored expressions with [Stored].
//
// # Costs
//
// The cost of an evaluation is counted as kube-apiserver counts it, with the exceptions that [ErrCallCost] and [MaxCallCost]
// document. The estimated maximum is the same number as in kube-apiserver. It is part of the API, because it decides which
// expressions may be stored in a schema. Three bounds limit a hostile expression: the estimate, by which the expression is
// refused before it is stored; [MaxCallCost], at which one evaluation stops; and the budget of an object, after which no further
// expression is evaluated. The end of a context stops an evaluation too, but only inside of comprehensions.
//
// The running time of a comprehension is proportional to the length of its list. In kube-apiserver it grows with the square of
// the length. The cost is the same.
//
// # Sources
//
// https://kubernetes.io/docs/reference/using-api/cel/, https://github.com/google/cel-spec/blob/master/doc/langdef.md and
// https://github.com/google/cel-go.
package cel
