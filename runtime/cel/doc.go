// Package cel has the expressions of Kubernetes: the Common Expression Language with the functions, types, costs and limits
// that kube-apiserver gives it. It is what rules in custom resources, admission policies, match conditions, and the
// configuration of authentication and authorization are written in. It is pure: it reads no clock, starts nothing and keeps
// nothing between calls.
//
// # The nouns
//
// An [Environment] is what expressions may use: the language of a [Version], and variables with a [DeclType] each. Compile
// makes a [Program] of an expression, which has an estimate of its cost, and Eval runs it with values.
//
//	env, err := cel.New(cel.Compatible)                        // once per process: slow
//	self := cel.Object("", fields).Named("selfType")           // objects need a name
//	env, err = env.Extend([]cel.Variable{{Name: "self", Type: self}, {Name: "oldSelf", Type: self}})
//	program, err := env.Compile("self.replicas <= 5", celgo.BoolType)
//	if program.Cost().Max > ... {}                             // refuse what may be too expensive
//	result, budget, err := program.Eval(ctx, values, budget)   // budget begins as cel.MaxObjectCost
//
// Values are those of cel-go (ref.Val), and so is what looks variables up (Activation): who has objects of a kind writes the
// values that read them in place. The value of a field whose name is a keyword is asked for by either name, "namespace" and
// "__namespace__".
//
// # Versions
//
// An expression that is written now is compiled in the environment of the release before, [Compatible], so that a cluster can
// go back to that release; an expression that is stored is compiled in [Stored], which has everything, so that no release
// refuses what another one accepted. Both have to be kept, and an update compiles what it does not change in Stored.
//
// # Costs
//
// What an evaluation costs is counted as kube-apiserver counts it, and what it is estimated to cost at most is the same
// number: it decides which expressions may be stored in a schema, so it is part of the API. Three things hold a hostile
// expression: the estimate, which is refused before it is stored; [MaxCallCost], at which an evaluation stops; and the
// budget of an object, which ends all evaluations after it. A context ends one too, inside of comprehensions.
//
// kube-apiserver counts what a call costs when it has been made, and counts only the surface of its arguments: a short
// expression makes a list that has itself twice, many times over, and comparing that never ends. Here calls that can be much
// larger than they look are judged before they are made, and end the evaluation with [ErrCallCost]. Most of them would cost too
// much afterwards; kube-apiserver would let pass, if it could, comparisons of lists and maps that both have more than a million
// elements with those in them and were made by the expression, a few million comparisons of their elements in sets and
// distinct, texts of more than 10 MB made by replace and format, a search for a text of a megabyte in another, and quantities
// of more than ten thousand digits or zeros.
//
// Other calls cost one in kube-apiserver however large what they read is: the size of a text, or lists in lists that are
// compared. In a comprehension they take minutes for a cost that is allowed. Here they cost more if they read texts of more than
// 32 KiB, more than a thousand elements in what an expression has made, or a regular expression that is no constant and has more
// than a thousand instructions. The estimates are the same. Regular expressions that are constants may have [MaxRegexSize]
// instructions: a few thousand characters are enough for more than a hundred megabytes.
//
// Whoever writes values that read objects spares them the counting by library.Tree, and can end an evaluation by library.Stop.
//
// The time of a comprehension grows with its list, not with the square of that as in kube-apiserver; it costs the same.
//
// # Errors
//
// A [CompileError] has the text of cel-go, a line for each fault with the place it is at. An [EvalError] has the text of the
// failed operation, such as "no such key: color" or "divide by zero". What is put around them is different for each field
// that has expressions, and the caller's. A few functions of cel-go panic on dyn of another type; the text is "internal error:"
// and names a type of Go then, which is another one here.
//
// # Sources
//
// https://kubernetes.io/docs/reference/using-api/cel/, https://github.com/google/cel-spec/blob/master/doc/langdef.md and
// https://github.com/google/cel-go.
package cel
