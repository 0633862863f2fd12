package library

import (
	"net/url"
	"reflect"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// URL is a value of type [URLType].
type URL struct{ *url.URL }

// URLType is the type of the result of url(...).
var URLType = celgo.ObjectType("kubernetes.URL")

// URLs returns the library with url and isURL, which take strings, and the parts of URLs. The strings have to be absolute URLs or
// absolute paths.
func URLs() celgo.EnvOption {
	part := func(name, id string, get func(*url.URL) string) function {
		return method(name, id, args(URLType), celgo.StringType, on(func(u URL) ref.Val { return types.String(get(u.URL)) }))
	}
	return celgo.Lib(lib{name: "kubernetes.urls", functions: []function{
		global("url", "string_to_url", args(celgo.StringType), URLType, onString(parseURL)),
		part("getScheme", "url_get_scheme", func(u *url.URL) string { return u.Scheme }),
		part("getHost", "url_get_host", func(u *url.URL) string { return u.Host }),
		part("getHostname", "url_get_hostname", (*url.URL).Hostname),
		part("getPort", "url_get_port", (*url.URL).Port),
		part("getEscapedPath", "url_get_escaped_path", (*url.URL).EscapedPath),
		method("getQuery", "url_get_query", args(URLType), celgo.MapType(celgo.StringType, celgo.ListType(celgo.StringType)), on(query)),
		global("isURL", "is_url_string", args(celgo.StringType), celgo.BoolType, onString(func(s string) ref.Val {
			_, err := url.ParseRequestURI(s)
			return types.Bool(err == nil)
		})),
	}})
}

// parseURL checks a string with the parser for request URIs, and parses it with the general parser, because only the latter
// parses fragments.
func parseURL(s string) ref.Val {
	_, err := url.ParseRequestURI(s)
	if err != nil {
		return types.NewErr("URL parse error during conversion from string: %v", err)
	}
	u, err := url.Parse(s)
	if err != nil {
		return types.NewErr("URL parse error during conversion from string: %v", err)
	}
	return URL{u}
}

// query returns a list of values for each key.
func query(u URL) ref.Val {
	result := map[ref.Val]ref.Val{}
	for key, values := range u.Query() {
		result[types.String(key)] = types.NewStringList(types.DefaultTypeAdapter, values)
	}
	return types.NewRefValMap(types.DefaultTypeAdapter, result)
}

// ConvertToNative implements ref.Val.
func (u URL) ConvertToNative(to reflect.Type) (any, error) {
	return native(u.URL, u.String, "URL", to)
}

// ConvertToType implements ref.Val.
func (u URL) ConvertToType(to ref.Type) ref.Val { return convert(u, URLType, to) }

// Equal implements ref.Val.
func (u URL) Equal(other ref.Val) ref.Val {
	o, ok := other.(URL)
	if !ok {
		return noOverload(other)
	}
	return types.Bool(u.String() == o.String())
}

// Type implements ref.Val.
func (u URL) Type() ref.Type { return URLType }

// Value implements ref.Val.
func (u URL) Value() any { return u.URL }
