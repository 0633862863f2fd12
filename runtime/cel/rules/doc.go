// Package rules checks and evaluates x-kubernetes-validations: the rules in the Common Expression Language that the schema of a
// custom resource may have at any level.
//
// The package checks rules when a definition is written, and evaluates them on objects. It reads no clock and starts no goroutine.
//
// [Compiler.Check] checks a schema as written, including its rules; [structural.Check] checks it without its rules.
// [Compiler.Compile] makes [Rules] of a compiled schema once. [Rules.Validate] and [Rules.ValidateUpdate] evaluate the rules on
// an object and return an [Outcome]. Package runtime/cel describes the language and its costs.
//
//	compiler, err := rules.NewCompiler()                                  // once per process
//	...
//	errs := compiler.Check(ctx, path, props, rules.Options{Stored: rules.ExpressionsOf(old...)}) // a definition is written
//	...
//	compiled, err := compiler.Compile(schema)                             // a version is served: when it is first needed
//	errs := schema.ValidateUpdate(nil, object, old)                       // and all other errors of an object
//	if err := rules.Blocked(errs); err != nil {
//		errs = append(errs, err)
//	} else {
//		outcome := compiled.ValidateUpdate(ctx, nil, object, old, rules.Budget)
//		errs = append(errs, outcome.Errors...)                            // and warn of outcome.Tolerated
//	}
//
// A write of the status alone is validated by the rules of the whole object too, together with the stored rest of the object.
//
// # Differences from kube-apiserver
//
// Object members are visited in the order of their names, so the first error, and the rules that were evaluated before a budget
// ran out, are always the same. Keys of lists of type map are compared by their names even if the names have to be escaped. The
// name of an object type in messages (selfType and a number) depends on the rules, not on the time. Rules inside allOf, anyOf,
// oneOf and not are not evaluated; no definition with such rules is accepted.
//
// Comparing objects, uniting lists, and reading long strings and the data encoded in them cost almost nothing in kube-apiserver,
// however large they are, so an evaluation may take minutes there. Here the evaluation ends as if it had cost too much.
// [Compiler.Compile] and [Rules.Validate] document further differences.
//
// # Sources
//
// https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#validation-rules,
// https://github.com/kubernetes/enhancements/tree/master/keps/sig-api-machinery/2876-crd-validation-expression-language and
// https://github.com/kubernetes/enhancements/tree/master/keps/sig-api-machinery/4008-crd-ratcheting.
package rules
