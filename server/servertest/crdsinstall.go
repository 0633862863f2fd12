package servertest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/registry"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// InstallCRDs is [Server.InstallCRDs] for a test, which fails at once where that returns an error.
//
//	srv := servertest.New(t, crd.New(crd.Options{}))
//	servertest.InstallCRDs(t, srv, "config/crd/bases")
func InstallCRDs(t testing.TB, s *Server, paths ...string) {
	t.Helper()
	if err := s.InstallCRDs(t.Context(), paths...); err != nil {
		t.Fatal(err)
	}
}

// InstallCRDs makes the CustomResourceDefinitions in files of YAML or JSON, and in the .yaml, .yml and .json files of folders,
// not of folders below them. A definition that is there is replaced, with its labels and annotations. It returns when all are
// established, requests meet what they define now, and discovery shows every version that they serve; the error says which
// definition is not, and why: what the server refused, or the condition that does not hold.
//
// The files must have nothing else in them: no other kinds, no v1beta1, no field that the server does not know, and no
// definition twice. Any number of documents may be in a file. Nothing is made unless all files can be read.
//
// The server must have the wing of package server/crd among its parts. This package does not bring it, so that the tests of
// programs without custom resources are not built from it.
func (s *Server) InstallCRDs(ctx context.Context, paths ...string) error {
	all, err := readCRDs(paths)
	if err != nil {
		return fmt.Errorf("servertest: InstallCRDs: %w", err)
	}
	in := crdInstall{s: s, client: s.Client()}
	if err := s.Install(server.ExtensionFunc(func(h *server.Host) error { in.host = h; return nil })); err != nil {
		return fmt.Errorf("servertest: InstallCRDs: %w", err)
	}
	made := make([]crdMade, 0, len(all))
	for _, d := range all {
		m, err := in.write(ctx, d)
		if err != nil {
			return fmt.Errorf("servertest: InstallCRDs: %s: %w", d.from, err)
		}
		made = append(made, m)
	}
	for _, m := range made {
		if err := in.await(ctx, m); err != nil {
			return fmt.Errorf("servertest: InstallCRDs: %s: %w", m.from, err)
		}
	}
	return nil
}

// crdInstall is an installation under way.
type crdInstall struct {
	s      *Server
	client *http.Client
	host   *server.Host
}

// crdMade is a definition that was written.
type crdMade struct {
	crdFile
	isNew  bool
	before *registry.Registry // of what was served until a write that changed the spec; nil: nothing was, or it goes on
}

const crdPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

// write creates a definition, or replaces the one that is there.
func (in *crdInstall) write(ctx context.Context, d crdFile) (crdMade, error) {
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
				return m, errors.New("the server serves no CustomResourceDefinitions: give it the wing of package server/crd, as in servertest.New(t, crd.New(crd.Options{}))")
			}
			if !isStatus(err, http.StatusConflict) {
				return m, err
			}
			m.isNew = false
			continue // somebody else has just made it
		}
		if err != nil {
			return m, err
		}
		if now.DeletionTimestamp != nil {
			return m, fmt.Errorf("the CustomResourceDefinition %s is being deleted", d.Name)
		}
		was, _ := in.host.Registry(resourceOf(&now)) // an error: it is not served
		generation := now.Generation
		body, err := replacement(d.body, now.ResourceVersion)
		if err != nil {
			return m, err
		}
		err = in.ask(ctx, http.MethodPut, crdPath+"/"+url.PathEscape(d.Name)+options, body, &now)
		if isStatus(err, http.StatusConflict) && ctx.Err() == nil {
			continue // such as when its conditions were written
		}
		if now.Generation != generation {
			m.before = was
		}
		return m, err
	}
}

// replacement is a definition as a write that replaces the one of a resourceVersion.
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

// await waits until what a definition defines is served.
func (in *crdInstall) await(ctx context.Context, m crdMade) error {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	const pause = 2 * time.Millisecond
	for {
		why, err := in.missing(ctx, m)
		if err != nil || why == "" {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the CustomResourceDefinition %s is not ready: %s", m.Name, why)
		case <-time.After(pause):
		}
	}
}

// missing says what there is to wait for, "" when there is nothing. The error is what waiting does not help against.
func (in *crdInstall) missing(ctx context.Context, m crdMade) (string, error) {
	var now apiextensionsv1.CustomResourceDefinition
	if err := in.ask(ctx, http.MethodGet, crdPath+"/"+url.PathEscape(m.Name), nil, &now); err != nil {
		return "", err
	}
	if why := unmet(&now); why != "" {
		for _, c := range now.Status.Conditions {
			if m.isNew && c.Type == apiextensionsv1.NamesAccepted && c.Status == apiextensionsv1.ConditionFalse {
				return "", fmt.Errorf("the CustomResourceDefinition %s is not accepted: %s", m.Name, why)
			}
		}
		return why, nil
	}
	if reg, err := in.host.Registry(resourceOf(&now)); err == nil && m.before != nil && reg == m.before {
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

// unmet says which conditions of a definition do not hold, "" when it is established and all its names are its own.
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

// statusError is an answer that is an error.
type statusError struct {
	code    int
	message string
}

// Error implements error.
func (e *statusError) Error() string { return e.message }

func isStatus(err error, code int) bool {
	status := (*statusError)(nil)
	return errors.As(err, &status) && status.code == code
}

// ask makes a request and decodes its answer.
func (in *crdInstall) ask(ctx context.Context, method, path string, body []byte, into any) error {
	req, err := http.NewRequestWithContext(ctx, method, in.s.URL+path, bytes.NewReader(body))
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
	return &statusError{resp.StatusCode, fmt.Sprintf("%s %s: %d: %s", method, path, resp.StatusCode, status.Message)}
}
