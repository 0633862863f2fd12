package servertest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/registry"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// InstallCRDs calls [Server.InstallCRDs] for a test, and fails the test at once if there is an error.
//
//	srv := servertest.New(t, crd.New(crd.Options{}))
//	servertest.InstallCRDs(t, srv, "config/crd/bases")
func InstallCRDs(t testing.TB, s *Server, paths ...string) {
	t.Helper()
	if err := s.InstallCRDs(t.Context(), paths...); err != nil {
		t.Fatal(err)
	}
}

// InstallCRDsFS calls [Server.InstallCRDsFS] for a test, and fails the test at once if there is an error.
//
//	//go:embed crds
//	var crds embed.FS
//	...
//	servertest.InstallCRDsFS(t, srv, crds)
func InstallCRDsFS(t testing.TB, s *Server, fsys fs.FS, paths ...string) {
	t.Helper()
	if err := s.InstallCRDsFS(t.Context(), fsys, paths...); err != nil {
		t.Fatal(err)
	}
}

// InstallCRDs is [Server.Define] for files of YAML or JSON, and for the .yaml, .yml and .json files directly in folders.
func (s *Server) InstallCRDs(ctx context.Context, paths ...string) error {
	if _, err := s.define(ctx, []CRDs{{Paths: paths}}); err != nil {
		return fmt.Errorf("servertest: InstallCRDs: %w", err)
	}
	return nil
}

// InstallCRDsFS is [Server.InstallCRDs] for files and folders of fsys, such as an embed.FS. Without paths it installs all .yaml,
// .yml and .json files in fsys.
func (s *Server) InstallCRDsFS(ctx context.Context, fsys fs.FS, paths ...string) error {
	if fsys == nil {
		return errors.New("servertest: InstallCRDsFS: there is no fs.FS")
	}
	if _, err := s.define(ctx, []CRDs{{FS: fsys, Paths: paths}}); err != nil {
		return fmt.Errorf("servertest: InstallCRDsFS: %w", err)
	}
	return nil
}

// Define creates CustomResourceDefinitions. An existing definition is replaced, with its labels and annotations. Define returns
// when all definitions are established, requests reach the new APIs, and discovery shows every version that they serve. It
// returns the definitions as they are then, sorted by name. The error names the definition and the cause: a refusal by the
// server, or a condition that is not True. The error also has the file and the line of the wrong field, for example
//
//	config/crd/boats.yaml:17: spec.versions[0].schema.openAPIV3Schema.type: Unsupported value: "text"
//
// It is an error if the files have other kinds (unless SkipOthers is set), a definition of v1beta1, a field that the server does
// not support, or a definition twice. Nothing is created unless all files can be read.
//
// A definition whose conversion strategy is Webhook is created unchanged. If Options.Conversions of package server/crd has a Go
// function for the kind, the server calls the function and never the webhook. So a test can use the file that its project
// installs in clusters, and needs no webhook:
//
//	srv := servertest.New(t, crd.New(crd.Options{Conversions: map[schema.GroupKind]runtime.ConvertUntyped{boat: convertBoat}}))
//
// The server must have the extension of package server/crd. This package does not import it, so that tests of programs without
// custom resources do not compile it.
func (s *Server) Define(ctx context.Context, sources ...CRDs) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	made, err := s.define(ctx, sources)
	if err != nil {
		return nil, fmt.Errorf("servertest: Define: %w", err)
	}
	return made, nil
}

// DefineAt is [Server.Define] for any other server, such as that of a cluster. url is its address, and client must send
// credentials. After DefineAt returns, requests may still reach the old API until that server has noticed the change.
func DefineAt(ctx context.Context, url string, client *http.Client, sources ...CRDs) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	all, err := readCRDs(sources)
	if err != nil {
		return nil, fmt.Errorf("servertest: DefineAt: %w", err)
	}
	made, err := crdInstall{url: strings.TrimSuffix(url, "/"), client: client}.all(ctx, all)
	if err != nil {
		return nil, fmt.Errorf("servertest: DefineAt: %w", err)
	}
	return made, nil
}

func (s *Server) define(ctx context.Context, sources []CRDs) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	all, err := readCRDs(sources)
	if err != nil {
		return nil, err
	}
	in := crdInstall{url: s.URL, client: s.Client()}
	if err := s.Install(server.ExtensionFunc(func(h *server.Host) error { in.host = h; return nil })); err != nil {
		return nil, err
	}
	return in.all(ctx, all)
}

// crdInstall is an installation in progress.
type crdInstall struct {
	url    string
	client *http.Client
	host   *server.Host // nil if the server is in another process
}

// all writes definitions and waits until all of them are served.
func (in crdInstall) all(ctx context.Context, all []crdFile) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	made := make([]crdMade, 0, len(all))
	for _, d := range all {
		m, err := in.write(ctx, d)
		if err != nil {
			return nil, d.explain(err)
		}
		made = append(made, m)
	}
	out := make([]*apiextensionsv1.CustomResourceDefinition, 0, len(all))
	for _, m := range made {
		now, err := in.await(ctx, m)
		if err != nil {
			return nil, m.explain(err)
		}
		out = append(out, now)
	}
	return out, nil
}

// crdMade is a definition that was written.
type crdMade struct {
	crdFile
	isNew  bool
	before *registry.Registry // what was served before a write that changed the spec; nil if that was nothing or remains
}

const crdPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

// write creates a definition, or replaces the existing one.
func (in crdInstall) write(ctx context.Context, d crdFile) (crdMade, error) {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	m := crdMade{crdFile: d}
	const options = "?fieldValidation=Strict&fieldManager=servertest"
	for {
		var now apiextensionsv1.CustomResourceDefinition
		err := in.ask(ctx, http.MethodGet, crdPath+"/"+url.PathEscape(d.Name), nil, &now)
		if isStatus(err, http.StatusNotFound) {
			m.isNew = true
			err = in.ask(ctx, http.MethodPost, crdPath+options, d.body, &now)
			if isStatus(err, http.StatusNotFound) {
				return m, errors.New("the server serves no CustomResourceDefinitions: give it the extension of package server/crd, as in servertest.New(t, crd.New(crd.Options{}))")
			}
			if !isStatus(err, http.StatusConflict) {
				return m, err
			}
			m.isNew = false
			continue // another client has created it
		}
		if err != nil {
			return m, err
		}
		if now.DeletionTimestamp != nil {
			return m, fmt.Errorf("the CustomResourceDefinition %s is being deleted", d.Name)
		}
		was := in.served(&now)
		generation := now.Generation
		body, err := replacement(d.body, now.ResourceVersion)
		if err != nil {
			return m, err
		}
		err = in.ask(ctx, http.MethodPut, crdPath+"/"+url.PathEscape(d.Name)+options, body, &now)
		if isStatus(err, http.StatusConflict) && ctx.Err() == nil {
			continue // for example, its conditions were written
		}
		if now.Generation != generation {
			m.before = was
		}
		return m, err
	}
}

// replacement returns the body of a write that replaces the definition with a resourceVersion.
func replacement(body []byte, version string) ([]byte, error) {
	var object, meta map[string]json.RawMessage
	if err := json.Unmarshal(body, &object); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(object["metadata"], &meta); err != nil {
		return nil, err
	}
	text, err := json.Marshal(version)
	if err != nil {
		return nil, err
	}
	meta["resourceVersion"] = text
	delete(meta, "uid")
	if object["metadata"], err = json.Marshal(meta); err != nil {
		return nil, err
	}
	return json.Marshal(object)
}

func resourceOf(d *apiextensionsv1.CustomResourceDefinition) schema.GroupResource {
	return schema.GroupResource{Group: d.Spec.Group, Resource: d.Spec.Names.Plural}
}

// served returns the registry that requests for a definition's objects reach now, or nil if there is none or it is unknown.
func (in crdInstall) served(d *apiextensionsv1.CustomResourceDefinition) *registry.Registry {
	if in.host == nil {
		return nil
	}
	r, err := in.host.Registry(resourceOf(d))
	if err != nil {
		return nil
	}
	return r
}

// await waits until a definition is served, and returns it.
func (in crdInstall) await(ctx context.Context, m crdMade) (*apiextensionsv1.CustomResourceDefinition, error) {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	const pause = 2 * time.Millisecond
	for {
		var now apiextensionsv1.CustomResourceDefinition
		why, err := in.missing(ctx, m, &now)
		switch {
		case err != nil:
			return nil, err
		case why == "":
			return &now, nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("the CustomResourceDefinition %s is not ready: %s", m.Name, why)
		case <-time.After(pause):
		}
	}
}

// missing reads the definition into now, and returns what is not ready yet, or "". The error is about a state that waiting cannot
// change.
func (in crdInstall) missing(ctx context.Context, m crdMade, now *apiextensionsv1.CustomResourceDefinition) (string, error) {
	if err := in.ask(ctx, http.MethodGet, crdPath+"/"+url.PathEscape(m.Name), nil, now); err != nil {
		return "", err
	}
	if why := unmet(now); why != "" {
		for _, c := range now.Status.Conditions {
			if m.isNew && c.Type == apiextensionsv1.NamesAccepted && c.Status == apiextensionsv1.ConditionFalse {
				return "", fmt.Errorf("the CustomResourceDefinition %s is not accepted: %s", m.Name, why)
			}
		}
		return why, nil
	}
	if m.before != nil && in.served(now) == m.before {
		return "requests do not meet what it defines now", nil
	}
	for _, v := range now.Spec.Versions {
		var shown metav1.APIResourceList
		err := in.ask(ctx, http.MethodGet, "/apis/"+now.Spec.Group+"/"+v.Name, nil, &shown)
		if err != nil && !isStatus(err, http.StatusNotFound) {
			return "", err
		}
		has := false
		for _, r := range shown.APIResources {
			has = has || r.Name == now.Spec.Names.Plural && r.Kind == now.Spec.Names.Kind
		}
		if has != v.Served {
			return fmt.Sprintf("whether discovery shows the version %s is %t, and it should be %t", v.Name, has, v.Served), nil
		}
	}
	return "", nil
}

// unmet describes the conditions of a definition that are not True. It returns "" if it is established and has all its names.
func unmet(d *apiextensionsv1.CustomResourceDefinition) string {
	var why []string
	for _, want := range []apiextensionsv1.CustomResourceDefinitionConditionType{apiextensionsv1.NamesAccepted, apiextensionsv1.Established} {
		holds := fmt.Sprintf("it has no condition %s", want)
		for _, c := range d.Status.Conditions {
			if c.Type != want {
				continue
			}
			if holds = ""; c.Status != apiextensionsv1.ConditionTrue {
				holds = fmt.Sprintf("its condition %s is %s: %s: %s", c.Type, c.Status, c.Reason, c.Message)
			}
		}
		if holds != "" {
			why = append(why, holds)
		}
	}
	return strings.Join(why, "; ")
}

// statusError is an error answer.
type statusError struct {
	code    int
	message string
	status  metav1.Status
}

// Error implements error.
func (e *statusError) Error() string { return e.message }

// explain adds the places of the wrong fields in the file to an error.
func (d crdFile) explain(err error) error {
	status := (*statusError)(nil)
	if !errors.As(err, &status) {
		return fmt.Errorf("%s: %w", d.place(""), err)
	}
	if fields := regexp.MustCompile(`(?:unknown|duplicate) field "([^"]+)"`).FindStringSubmatch(status.message); fields != nil {
		return fmt.Errorf("%s: %w", d.place(fields[1]), err)
	}
	if status.status.Details == nil || len(status.status.Details.Causes) == 0 || d.line == 0 {
		return fmt.Errorf("%s: %w", d.place(""), err)
	}
	causes := status.status.Details.Causes
	if len(causes) == 1 {
		return fmt.Errorf("%s: %w", d.place(causes[0].Field), err)
	}
	var list strings.Builder
	for _, c := range causes[:min(len(causes), maxCauses)] {
		fmt.Fprintf(&list, "\n\t%s: %s: %s", d.place(c.Field), c.Field, c.Message)
	}
	if more := len(causes) - maxCauses; more > 0 {
		fmt.Fprintf(&list, "\n\tand %d more", more)
	}
	return fmt.Errorf("%s: the CustomResourceDefinition %s is invalid:%s", d.place(""), d.Name, list.String())
}

// maxCauses is the maximum number of causes in one error.
const maxCauses = 20

func isStatus(err error, code int) bool {
	status := (*statusError)(nil)
	return errors.As(err, &status) && status.code == code
}

// ask sends a request and decodes its answer.
func (in crdInstall) ask(ctx context.Context, method, path string, body []byte, into any) error {
	req, err := http.NewRequestWithContext(ctx, method, in.url+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "servertest")
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := in.client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode < http.StatusBadRequest {
		return json.Unmarshal(text, into)
	}
	var status metav1.Status
	if json.Unmarshal(text, &status) != nil || status.Message == "" {
		status.Message = strings.TrimSpace(string(text))
	}
	return &statusError{resp.StatusCode, fmt.Sprintf("%s %s: %d: %s", method, path, resp.StatusCode, status.Message), status}
}
