package client

import (
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"

	"sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

const maxConfigFile = 4 << 20 // the largest size in bytes of a kubeconfig, certificate or token file

// kubeconfig has the fields of a kubeconfig file; see https://kubernetes.io/docs/reference/config-api/kubeconfig.v1/.
type kubeconfig struct {
	APIVersion  string         `json:"apiVersion"`
	Kind        string         `json:"kind"`
	Preferences any            `json:"preferences"`
	Extensions  any            `json:"extensions"`
	Current     string         `json:"current-context"`
	Clusters    []namedCluster `json:"clusters"`
	Users       []namedUser    `json:"users"`
	Contexts    []namedContext `json:"contexts"`
}

type namedCluster struct {
	Name    string  `json:"name"`
	Cluster cluster `json:"cluster"`
}

type cluster struct {
	Server             string `json:"server"`
	TLSServerName      string `json:"tls-server-name"`
	Insecure           bool   `json:"insecure-skip-tls-verify"`
	CAFile             string `json:"certificate-authority"`
	CAData             []byte `json:"certificate-authority-data"`
	ProxyURL           string `json:"proxy-url"`
	DisableCompression bool   `json:"disable-compression"`
	Extensions         any    `json:"extensions"`
}

type namedUser struct {
	Name string `json:"name"`
	User user   `json:"user"`
}

type user struct {
	CertFile   string              `json:"client-certificate"`
	CertData   []byte              `json:"client-certificate-data"`
	KeyFile    string              `json:"client-key"`
	KeyData    []byte              `json:"client-key-data"`
	Token      string              `json:"token"`
	TokenFile  string              `json:"tokenFile"`
	As         string              `json:"as"`
	AsUID      string              `json:"as-uid"`
	AsGroups   []string            `json:"as-groups"`
	AsExtra    map[string][]string `json:"as-user-extra"`
	Username   string              `json:"username"`
	Password   string              `json:"password"`
	Provider   any                 `json:"auth-provider"`
	Exec       any                 `json:"exec"`
	Extensions any                 `json:"extensions"`
}

type namedContext struct {
	Name    string       `json:"name"`
	Context usersContext `json:"context"`
}

type usersContext struct {
	Cluster    string `json:"cluster"`
	User       string `json:"user"`
	Namespace  string `json:"namespace"` // not used: every method has an argument for the namespace
	Extensions any    `json:"extensions"`
}

// Kubeconfig reads a kubeconfig file and returns the Config of a context; "" means its current-context. Relative paths in the
// file are relative to its folder, and data fields are preferred to files. Only this file is read: the variable KUBECONFIG and
// files in the home folder are ignored, and so is the namespace of the context.
//
// A field that kubeconfigs do not have is an error. If the user of the context needs a plug-in (exec, auth-provider), Kubeconfig
// returns an error, because this package does not run plug-ins. Errors name the file and the field.
func Kubeconfig(path, context string) (Config, error) {
	text, err := readFile(path)
	if err != nil {
		return Config{}, fmt.Errorf("kubeconfig: %w", err)
	}
	return ParseKubeconfig(text, path, context)
}

// ParseKubeconfig is Kubeconfig for the content of the file at a path, such as that which package reload has read.
func ParseKubeconfig(text []byte, path, context string) (Config, error) {
	var file kubeconfig
	if err := parse(text, &file); err != nil {
		return Config{}, fmt.Errorf("kubeconfig %s: %w", path, err)
	}
	k := &kubeconfigReader{file: &file, path: path, dir: filepath.Dir(path)}
	cfg, err := k.config(context)
	if err != nil {
		return Config{}, fmt.Errorf("kubeconfig %s: %w", path, err)
	}
	return cfg, nil
}

// parse parses YAML or JSON. Its errors do not contain values, which may be secrets.
func parse(text []byte, file *kubeconfig) error {
	text, err := yaml.YAMLToJSONStrict(text)
	if err != nil && strings.Contains(err.Error(), "already set in map") {
		return errors.New("a key is there twice in one map; remove one")
	}
	if err != nil {
		return errors.New("it is not YAML; see https://kubernetes.io/docs/reference/config-api/kubeconfig.v1/")
	}
	problems, err := json.UnmarshalStrict(text, file)
	if err == nil && len(problems) == 0 {
		return nil
	}
	if err == nil {
		return fmt.Errorf("%w; remove it or correct its name", problems[0])
	}
	if strings.Contains(err.Error(), "illegal base64") {
		return errors.New("a field whose name ends in -data is not base64; encode the file with base64")
	}
	if _, rest, ok := strings.Cut(err.Error(), "Go struct field "); ok {
		field, _, _ := strings.Cut(rest, " of type")
		return fmt.Errorf("the field %s has a value of another type; quote it if it is text", field)
	}
	return errors.New("it is no kubeconfig; see https://kubernetes.io/docs/reference/config-api/kubeconfig.v1/")
}

type kubeconfigReader struct {
	file *kubeconfig
	path string
	dir  string
}

func (k *kubeconfigReader) config(context string) (Config, error) {
	f := k.file
	if f.Kind != "" && f.Kind != "Config" || f.APIVersion != "" && f.APIVersion != "v1" {
		return Config{}, fmt.Errorf("kind and apiVersion: %s %s is not supported; want kind Config, apiVersion v1", f.Kind, f.APIVersion)
	}
	if context == "" {
		context = f.Current
	}
	if context == "" {
		return Config{}, errors.New("current-context: it is not set; set it, or name a context")
	}
	ctx, where, err := named("contexts", context, f.Contexts, func(c namedContext) string { return c.Name })
	if err != nil {
		return Config{}, err
	}
	cl, at, err := named("clusters", ctx.Context.Cluster, f.Clusters, func(c namedCluster) string { return c.Name })
	if err != nil {
		return Config{}, fmt.Errorf("%s.cluster: %w", where, err)
	}
	var cfg Config
	if err := k.cluster(&cfg, &cl.Cluster); err != nil {
		return Config{}, fmt.Errorf("%s.%w", at, err)
	}
	if ctx.Context.User == "" {
		return cfg, k.checked(cfg, at)
	}
	u, at, err := named("users", ctx.Context.User, f.Users, func(u namedUser) string { return u.Name })
	if err != nil {
		return Config{}, fmt.Errorf("%s.user: %w", where, err)
	}
	if err := k.user(&cfg, &u.User); err != nil {
		return Config{}, fmt.Errorf("%s.%w", at, err)
	}
	return cfg, k.checked(cfg, at)
}

// checked returns the error that New would return, with the name of the file.
func (k *kubeconfigReader) checked(cfg Config, at string) error {
	_, err := cfg.check()
	if err == nil {
		_, err = newIdentity(cfg, func(string, error) {})
	}
	if err != nil {
		return fmt.Errorf("%s: %s", at, strings.TrimPrefix(err.Error(), "client: "))
	}
	return nil
}

// named finds an entry by name, and returns its place in the file.
func named[T any](list, name string, entries []T, nameOf func(T) string) (found T, where string, err error) {
	var names []string
	for i, e := range entries {
		names = append(names, nameOf(e))
		if nameOf(e) != name {
			continue
		}
		if where != "" {
			return found, where, fmt.Errorf("%s: %q is there twice; remove or rename one", list, name)
		}
		found, where = e, fmt.Sprintf("%s[%d] (%q)", list, i, name)
	}
	if where == "" {
		return found, "", fmt.Errorf("%s: there is no %q; the file has %q", list, name, names)
	}
	return found, where, nil
}

func (k *kubeconfigReader) cluster(cfg *Config, c *cluster) error {
	if _, err := serverURL(c.Server); err != nil {
		return fmt.Errorf("server: %w", err)
	}
	cfg.Server, cfg.ServerName, cfg.Insecure, cfg.DisableCompression = c.Server, c.TLSServerName, c.Insecure, c.DisableCompression
	cfg.CA = c.CAData
	field := "certificate-authority-data"
	if len(c.CAData) == 0 && c.CAFile != "" {
		field = "certificate-authority"
		var err error
		if cfg.CA, err = readFile(k.resolve(c.CAFile)); err != nil {
			return fmt.Errorf("%s: %w", field, err)
		}
		if len(cfg.CA) == 0 {
			return fmt.Errorf("%s: %s is empty; want certificates in PEM", field, k.resolve(c.CAFile))
		}
	}
	if err := checkAuthorities(cfg.CA); err != nil {
		return fmt.Errorf("%s: %w", field, err)
	}
	if c.Insecure && len(cfg.CA) > 0 {
		return fmt.Errorf("%s: it has no effect with insecure-skip-tls-verify; leave one of them out", field)
	}
	if c.ProxyURL != "" {
		u, err := proxyURL(c.ProxyURL)
		if err != nil {
			return fmt.Errorf("proxy-url: %w", err)
		}
		cfg.Proxy = http.ProxyURL(u)
	}
	return nil
}

func (k *kubeconfigReader) user(cfg *Config, u *user) error {
	const instead = "plug-ins are not run; use token, tokenFile or client-certificate and client-key, for example those of a service account"
	if u.Exec != nil {
		return errors.New("exec: " + instead)
	}
	if u.Provider != nil {
		return errors.New("auth-provider: " + instead)
	}
	cfg.Cert, cfg.Key = u.CertData, u.KeyData
	if err := k.certificate(cfg, u); err != nil {
		return err
	}
	cfg.Token, cfg.TokenFile = u.Token, k.resolve(u.TokenFile)
	cfg.Username, cfg.Password = u.Username, u.Password
	cfg.Impersonate = Impersonation{User: u.As, UID: u.AsUID, Groups: u.AsGroups, Extra: u.AsExtra}
	return nil
}

// certificate sets the certificate and the key, each from data or from a file. If both are files, they are read again later.
func (k *kubeconfigReader) certificate(cfg *Config, u *user) error {
	certFile, keyFile := u.CertFile, u.KeyFile
	if len(u.CertData) > 0 {
		certFile = ""
	}
	if len(u.KeyData) > 0 {
		keyFile = ""
	}
	hasCert, hasKey := len(u.CertData) > 0 || certFile != "", len(u.KeyData) > 0 || keyFile != ""
	switch {
	case hasCert && !hasKey:
		return errors.New("client-key: it is missing; client-certificate needs it")
	case hasKey && !hasCert:
		return errors.New("client-certificate: it is missing; client-key needs it")
	case certFile != "" && keyFile != "":
		cfg.CertFile, cfg.KeyFile = k.resolve(certFile), k.resolve(keyFile)
		return nil
	}
	var err error
	if certFile != "" {
		if cfg.Cert, err = readFile(k.resolve(certFile)); err != nil {
			return fmt.Errorf("client-certificate: %w", err)
		}
	}
	if keyFile != "" {
		if cfg.Key, err = readFile(k.resolve(keyFile)); err != nil {
			return fmt.Errorf("client-key: %w", err)
		}
	}
	return nil
}

// resolve returns a path in the file, which is relative to the file's folder.
func (k *kubeconfigReader) resolve(path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(k.dir, path)
}
