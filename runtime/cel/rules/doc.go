// Package rules evaluates x-kubernetes-validations: the rules in the Common Expression Language that the schema of a custom
// resource has at any level. It says what is wrong with rules when a definition is written, and with an object by its rules.
// It is pure: it reads no clock and starts nothing.
//
// # The nouns
//
// A [Compiler] has the language, of which package runtime/cel tells. [Compiler.Check] judges a schema as written, with its rules,
// where [structural.Check] judges it without them. [Compiler.Compile] makes [Rules] of a compiled schema, once, and those
// are evaluated on objects: [Rules.Validate] and [Rules.ValidateUpdate] give an [Outcome].
//
//	compiler, err := rules.NewCompiler()                                  // once per program
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
// A write of the status alone is judged by the rules of the whole object too, with what was stored around it, as in the
// example.
//
// # What rules see
//
// self is the value of the schema that the rule is in. An object has the fields that its schema names, by names that are
// escaped where they are no identifiers; null fields are absent. The root and embedded resources have apiVersion, kind,
// metadata.name and metadata.generateName whatever the schema says, and nothing else of metadata. What a schema does not
// describe cannot be seen, but counts when objects are compared, and when their keys are gone through, as null. Values are read in place: nothing of an object is copied,
// and what no rule asks for is not looked at.
//
// oldSelf is what the value was before an update. A rule that uses it is evaluated only if there is something: elements of
// lists have a counterpart in lists of type map, by their keys, members of objects by their names. With optionalOldSelf the
// rule is always evaluated, and oldSelf is an optional value. In the expression of a message it is not optional even then.
//
// Lists of type set and map are equal in any order, and X + Y is their union.
//
// # Costs
//
// [Compiler.Check] refuses rules that are estimated to cost too much for the largest object which the schema allows, each by
// itself and all together. When an object is judged what rules do cost is taken from a budget, and when that is spent, or one
// evaluation costs too much, nothing is evaluated any more and the object is refused.
//
// Compiling takes much longer than judging: half a millisecond and 15 KB for a rule, and time by the square of the length of a
// long one. [Compiler.Compile] refuses more than [MaxRules], [MaxRule] and [MaxRuleText] allow, which is a second's work, and
// [Compiler.Check] ends when its context does: who calls it with what others write should bound that first. kube-apiserver does
// neither. Equal rules of one schema are compiled once.
//
// # Ratcheting
//
// When an update does not change a value, a rule that fails on it and is not about oldSelf is an error of nobody's making: it is
// tolerated, and told as a warning. Values are paired as in [structural.Schema.ValidateUpdate]. Where a value has no
// counterpart, the nearest one around it which has counts. Errors of the evaluation itself are never tolerated.
//
// # Differences from kube-apiserver
//
// Members of objects are visited in the order of their names where it takes any order, so which error comes first, and
// what was evaluated before a budget ran out, is the same each time. Keys of lists of type map are compared by their names also
// if those have to be escaped. The name of an object's type in messages, selfType and a number, depends on the rules and not on
// the time. Rules inside of allOf, anyOf, oneOf and not are not evaluated: no definition with them is accepted.
// Where kube-apiserver would go on for minutes, since comparing objects, uniting lists, and reading long texts and what is encoded in
// them costs next to nothing however large they are, an evaluation ends as if it had cost too much. Regular expressions of all
// rules of a schema may have a million instructions together, of some forty bytes each. An object that is made dyn has no members
// besides those that rules see: in kube-apiserver a macro over it also meets a null for each of the others.
//
// # Sources
//
// https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#validation-rules,
// https://github.com/kubernetes/enhancements/tree/master/keps/sig-api-machinery/2876-crd-validation-expression-language and
// https://github.com/kubernetes/enhancements/tree/master/keps/sig-api-machinery/4008-crd-ratcheting.
package rules
