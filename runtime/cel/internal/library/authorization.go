package library

import (
	"context"
	"reflect"
	"strings"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"k8s.io/apimachinery/pkg/api/validation"
)

// The types of the variable authorizer, and of the values that its methods return.
var (
	AuthorizerType    = celgo.ObjectType("kubernetes.authorization.Authorizer")    // type of the variable authorizer
	PathCheckType     = celgo.ObjectType("kubernetes.authorization.PathCheck")     // result of authorizer.path
	GroupCheckType    = celgo.ObjectType("kubernetes.authorization.GroupCheck")    // result of authorizer.group
	ResourceCheckType = celgo.ObjectType("kubernetes.authorization.ResourceCheck") // result of group.resource
	DecisionType      = celgo.ObjectType("kubernetes.authorization.Decision")      // result of the method check
)

// Check is an authorization question of an expression.
type Check struct {
	// ServiceAccountNamespace and ServiceAccountName identify the service account to authorize. If both are empty, the user of
	// the request is authorized.
	ServiceAccountNamespace, ServiceAccountName string
	// Verb is the verb, as the expression has it.
	Verb string
	// Path is the path of a non-resource request. It is empty for a check of a resource.
	Path string
	// Group, Resource, Subresource, Namespace and Name identify the resource. Resource is the plural name. The check is for all
	// versions of the API.
	Group, Resource, Subresource, Namespace, Name string
	// FieldSelector and LabelSelector are the selectors, as the expression has them. The Checker parses them, and ignores those
	// that do not parse.
	FieldSelector, LabelSelector string
}

// Decision is the answer to a Check.
type Decision struct {
	Allowed bool   // Allowed means that the user is allowed to do this.
	Reason  string // Reason is the explanation of the authorizer.
	Err     error  // Err is the error of the authorizer.
}

// Checker answers a check. It is called while an expression is evaluated, with the context given to [NewAuthorizer].
type Checker func(context.Context, Check) Decision

// NewAuthorizer returns a value for the variable authorizer, of type [AuthorizerType]. The value is for the evaluations of one
// request, because it holds the context of the request.
func NewAuthorizer(ctx context.Context, checker Checker) ref.Val {
	return authorizer{request{ctx: ctx, checker: checker}}
}

// NewResourceAuthorizer returns a value for the variable authorizer.requestResource, of type [ResourceCheckType]. The value
// checks resource with the verb that the expression gives.
func NewResourceAuthorizer(ctx context.Context, checker Checker, resource Check) ref.Val {
	return resourceCheck{request{ctx: ctx, checker: checker, check: resource}}
}

// request collects the parts of a check.
type request struct {
	ctx     context.Context
	checker Checker
	check   Check
}

// with returns the request with the change that add makes.
func (r request) with(add func(*Check)) request {
	add(&r.check)
	return r
}

// decide calls the checker.
func (r request) decide(verb string) ref.Val {
	r.check.Verb = verb
	return decision{r.checker(r.ctx, r.check)}
}

type (
	authorizer    struct{ request }
	pathCheck     struct{ request }
	groupCheck    struct{ request }
	resourceCheck struct{ request }
	decision      struct{ Decision }
)

// Authorization returns the library with the functions of the variable authorizer. It does not declare the variable.
func Authorization() celgo.EnvOption {
	text := celgo.StringType
	return celgo.Lib(lib{name: "kubernetes.authz", functions: []function{
		method("path", "authorizer_path", args(AuthorizerType, text), PathCheckType, onText(func(v authorizer, path string) ref.Val {
			if strings.TrimSpace(path) == "" {
				return types.NewErr("path must not be empty")
			}
			return pathCheck{v.with(func(c *Check) { c.Path = path })}
		})),
		method("group", "authorizer_group", args(AuthorizerType, text), GroupCheckType, onText(func(v authorizer, group string) ref.Val {
			return groupCheck{v.with(func(c *Check) { c.Group = group })}
		})),
		method("serviceAccount", "authorizer_serviceaccount", args(AuthorizerType, text, text), AuthorizerType,
			celgo.FunctionBinding(serviceAccount)),
		method("resource", "groupcheck_resource", args(GroupCheckType, text), ResourceCheckType,
			onText(func(v groupCheck, resource string) ref.Val {
				if strings.TrimSpace(resource) == "" {
					return types.NewErr("resource must not be empty")
				}
				return resourceCheck{v.with(func(c *Check) { c.Resource = resource })}
			})),
		narrow("subresource", "resourcecheck_subresource", func(c *Check, s string) { c.Subresource = s }),
		narrow("namespace", "resourcecheck_namespace", func(c *Check, s string) { c.Namespace = s }),
		narrow("name", "resourcecheck_name", func(c *Check, s string) { c.Name = s }),
		{"check", []celgo.FunctionOpt{
			celgo.MemberOverload("pathcheck_check", args(PathCheckType, text), DecisionType,
				onText(func(v pathCheck, verb string) ref.Val { return v.decide(verb) })),
			celgo.MemberOverload("resourcecheck_check", args(ResourceCheckType, text), DecisionType,
				onText(func(v resourceCheck, verb string) ref.Val { return v.decide(verb) })),
		}},
		method("errored", "decision_errored", args(DecisionType), celgo.BoolType,
			on(func(v decision) ref.Val { return types.Bool(v.Err != nil) })),
		method("error", "decision_error", args(DecisionType), text, on(func(v decision) ref.Val {
			if v.Err == nil {
				return types.String("")
			}
			return types.String(v.Err.Error())
		})),
		method("allowed", "decision_allowed", args(DecisionType), celgo.BoolType,
			on(func(v decision) ref.Val { return types.Bool(v.Allowed) })),
		method("reason", "decision_reason", args(DecisionType), text, on(func(v decision) ref.Val { return types.String(v.Reason) })),
	}})
}

// AuthorizationSelectors returns the library with the functions for field and label selectors. It needs [Authorization].
func AuthorizationSelectors() celgo.EnvOption {
	return celgo.Lib(lib{name: "kubernetes.authzSelectors", functions: []function{
		narrow("fieldSelector", "authorizer_fieldselector", func(c *Check, s string) { c.FieldSelector = s }),
		narrow("labelSelector", "authorizer_labelselector", func(c *Check, s string) { c.LabelSelector = s }),
	}})
}

// narrow declares a method that sets one more part of a resource check.
func narrow(name, id string, set func(*Check, string)) function {
	return method(name, id, args(ResourceCheckType, celgo.StringType), ResourceCheckType,
		onText(func(v resourceCheck, s string) ref.Val { return resourceCheck{v.with(func(c *Check) { set(c, s) })} }))
}

// serviceAccount returns an authorizer for another user, a service account.
func serviceAccount(args ...ref.Val) ref.Val {
	if len(args) != 3 {
		return types.NoSuchOverloadErr()
	}
	v, ok := args[0].(authorizer)
	if !ok {
		return noOverload(args[0])
	}
	namespace, ok := args[1].Value().(string)
	if !ok {
		return noOverload(args[1])
	}
	name, ok := args[2].Value().(string)
	if !ok {
		return noOverload(args[2])
	}
	if len(validation.ValidateServiceAccountName(name, false)) > 0 {
		return types.NewErr("Invalid service account name")
	}
	if len(validation.ValidateNamespaceName(namespace, false)) > 0 {
		return types.NewErr("Invalid service account namespace")
	}
	return authorizer{v.with(func(c *Check) { c.ServiceAccountNamespace, c.ServiceAccountName = namespace, name })}
}

// ConvertToNative implements ref.Val.
func (request) ConvertToNative(to reflect.Type) (any, error) {
	return native(nil, nil, "authorizer", to)
}

// Equal implements ref.Val. Values of authorization cannot be compared.
func (request) Equal(other ref.Val) ref.Val { return noOverload(other) }

// Value implements ref.Val. The value has no Go value.
func (request) Value() any { return types.NoSuchOverloadErr() }

// ConvertToType implements ref.Val.
func (v authorizer) ConvertToType(to ref.Type) ref.Val { return convert(v, AuthorizerType, to) }

// ConvertToType implements ref.Val.
func (v pathCheck) ConvertToType(to ref.Type) ref.Val { return convert(v, PathCheckType, to) }

// ConvertToType implements ref.Val.
func (v groupCheck) ConvertToType(to ref.Type) ref.Val { return convert(v, GroupCheckType, to) }

// ConvertToType implements ref.Val.
func (v resourceCheck) ConvertToType(to ref.Type) ref.Val { return convert(v, ResourceCheckType, to) }

// ConvertToType implements ref.Val.
func (v decision) ConvertToType(to ref.Type) ref.Val { return convert(v, DecisionType, to) }

// Type implements ref.Val.
func (authorizer) Type() ref.Type { return AuthorizerType }

// Type implements ref.Val.
func (pathCheck) Type() ref.Type { return PathCheckType }

// Type implements ref.Val.
func (groupCheck) Type() ref.Type { return GroupCheckType }

// Type implements ref.Val.
func (resourceCheck) Type() ref.Type { return ResourceCheckType }

// Type implements ref.Val.
func (decision) Type() ref.Type { return DecisionType }

// ConvertToNative implements ref.Val.
func (decision) ConvertToNative(to reflect.Type) (any, error) {
	return native(nil, nil, "decision", to)
}

// Equal implements ref.Val. Values of authorization cannot be compared.
func (decision) Equal(other ref.Val) ref.Val { return noOverload(other) }

// Value implements ref.Val. The value has no Go value.
func (decision) Value() any { return types.NoSuchOverloadErr() }
