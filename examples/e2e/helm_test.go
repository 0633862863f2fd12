package e2e_test

import (
	"encoding/base64"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/examples/e2e/harness"
)

// The life of a release, in a namespace that Helm creates.
func TestHelmReleases(t *testing.T) {
	withHelms(t, func(t *testing.T, d *desk) {
		d.namespace += "-helm"
		d.kubectl("config", "set-context", "--current", "--namespace="+d.namespace).OK()
		d.helm("install", "one", "desk").Fails(`Error: INSTALLATION FAILED: create: failed to create: namespaces "` + d.namespace + `" not found`)
		d.helm("install", "one", "desk", "--create-namespace").Contains("NAMESPACE: "+d.namespace+"\nSTATUS: deployed\nREVISION: 1\n", "A red lamp of 40 watts.\n")
		const here = "lamp.home.example.com/one lamp.home.example.com/one-pre-install configmap/one-config configmap/one-pre-install secret/one-secret"
		d.has(here)
		d.kubectl("get", "lamp", "one", "-o", "jsonpath={.spec.watts} {.spec.color} {.spec.bulbs[*].name} {.spec.bulbs[*].socket} {.metadata.labels}").
			Want(`40 red left right E27 E27 {"app.kubernetes.io/managed-by":"Helm","chart":"desk"}`, "")
		d.kubectl("get", "configmap", "one-config", "-o", "jsonpath={.data.revision} {.data.served} {.data.before}{.data.lamps}").Want("1 true 0", "")
		d.kubectl("get", "secret", "one-secret", "-o", "jsonpath={.type} {.data} {.stringData}").Want(`Opaque {"password":"czNjcmV0","user":"YW5u"} `, "")
		d.kubectl("get", "secrets", "-l", "owner=helm,status=deployed", "--field-selector=type=helm.sh/release.v1", "-o", "name").
			Want("secret/sh.helm.release.v1.one.v1\n", "")

		d.helm("list").Contains("one \t"+d.namespace+"\t1       \t", "\tdeployed\tdesk-1.0.0\t7")
		d.helm("list", "-A", "-q", "--filter", "^one$", "-l", "owner=helm").Contains("one\n")
		d.helm("get", "manifest", "one").Contains("kind: Lamp\nmetadata:\n  name: one\n", "kind: Secret\n")
		d.helm("get", "hooks", "one").Contains("name: one-post-delete\n")
		d.helm("get", "values", "one", "--all", "-o", "json").Contains(`"watts":40`)
		d.helm("get", "metadata", "one").Contains("CHART: desk\n")
		d.helm("get", "notes", "one").Contains("A red lamp of 40 watts.\n")
		status := d.helm("status", "one").Contains("STATUS: deployed\nREVISION: 1\n")
		if d.four() { // the tables of the server
			status.Contains("==> v1/Lamp\nNAME   WATTS   AGE\none    40      ", "==> v1/Secret\nNAME         TYPE     DATA   AGE\none-secret   Opaque   2      ",
				"==> v1/ConfigMap\nNAME         DATA   AGE\none-config   5      ")
		}

		d.helm("upgrade", "one", "desk", "--set", "color=blue,extra=true,bulbs={left,middle},user=bob").Contains("REVISION: 2\n", "A blue lamp of 40 watts.\n")
		d.has("lamp.home.example.com/one lamp.home.example.com/one-pre-install configmap/one-config configmap/one-extra configmap/one-pre-install secret/one-secret")
		d.kubectl("get", "lamp", "one", "-o", "jsonpath={.spec.color} {.spec.bulbs[*].name} {.spec.bulbs[*].socket} {.metadata.generation}").Want("blue left middle E27 E27 2", "")
		d.kubectl("get", "configmap", "one-config", "-o", "jsonpath={.data.revision} {.data.before} {.data.lamps}").Want("2 red 2", "")

		d.kubectl("get", "secret", "one-secret", "-o", "jsonpath={.data}").Want(`{"password":"czNjcmV0","user":"Ym9i"}`, "")

		d.helm("rollback", "one", "1").Want("Rollback was a success! Happy Helming!\n", "")
		d.has("lamp.home.example.com/one lamp.home.example.com/one-pre-install configmap/one-config configmap/one-pre-install configmap/one-pre-rollback secret/one-secret")
		d.kubectl("get", "lamp", "one", "-o", "jsonpath={.spec.color} {.spec.bulbs[*].name} {.metadata.generation}").Want("red left right 3", "")
		d.was("one", "superseded: Install complete", "superseded: Upgrade complete", "deployed: Rollback to 1")

		d.helm("uninstall", "one", "--keep-history", "--wait", "--timeout=50s").Want("release \"one\" uninstalled\n", "")
		d.has("lamp.home.example.com/one-pre-install configmap/one-post-delete configmap/one-pre-install configmap/one-pre-rollback")
		d.was("one", "superseded: Install complete", "superseded: Upgrade complete", "uninstalled: Uninstallation complete")
		d.helm("list", "-q", "--deployed").Want("", "")
		d.helm("rollback", "one", "2").OK()
		d.kubectl("get", "lamp", "one", "-o", "jsonpath={.spec.color} {.metadata.generation}").Want("blue 1", "")
		d.helm("uninstall", "one").Want("release \"one\" uninstalled\n", "")
		d.kubectl("get", "secrets", "-l", "owner=helm").Want("", "No resources found in "+d.namespace+" namespace.\n")
		d.helm("status", "one").Fails("Error: release: not found")
		d.helm("uninstall", "one").Fails("Error: uninstall: Release not loaded: one: release: not found")
		d.kubectl("delete", "namespace", d.namespace, "--wait=false").OK()
	})
}

// has checks the names of the existing objects.
func (d *desk) has(want string) {
	d.t.Helper()
	if got := d.objects(); got != want {
		d.t.Errorf("there is\n%s\nwant\n%s", got, want)
	}
}

// was checks the history of a release.
func (d *desk) was(release string, want ...string) {
	d.t.Helper()
	if got := d.revisions(release); !slices.Equal(got, want) {
		d.t.Errorf("the history of %s is\n%s\nwant\n%s", release, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// Objects can also be replaced, which uses their resourceVersion, and deleted with any policy.
func TestHelmReplace(t *testing.T) {
	withHelms(t, func(t *testing.T, d *desk) {
		replace := []string{"upgrade", "one", "desk", "--set", "color=blue", "--force"}
		if d.four() {
			replace = append(replace[:5], "--force-replace", "--server-side=false")
		}
		d.helm("install", "one", "desk").OK()
		d.kubectl("annotate", "lamp", "one", "room=kitchen").OK()
		d.helm(replace...).OK()
		d.kubectl("get", "lamp", "one", "-o", "jsonpath={.spec.color} {.metadata.annotations.room} {.metadata.generation}").Want("blue  2", "")
		if !d.crd { // a kube-apiserver alone has no garbage collector, which would release the orphans
			for _, policy := range []string{"orphan", "foreground"} {
				d.helm("upgrade", "--install", "one", "desk").OK()
				d.helm("uninstall", "one", "--cascade="+policy, "--wait", "--timeout=50s").OK()
				harness.Eventually(t, "the chart's objects are gone", func() bool {
					return d.objects() == "lamp.home.example.com/one-pre-install configmap/one-post-delete configmap/one-pre-install"
				})
			}
		}

		// A release is stored in a Secret, whose size is limited.
		large := make([]byte, 900_000)
		rand.NewChaCha8([32]byte{}).Read(large)
		file := d.program.File("large", base64.StdEncoding.EncodeToString(large), 0o600)
		d.helm("install", "large", "desk", "--set-file", "password="+file).
			Fails(`create: failed to create: Secret "sh.helm.release.v1.large.v1" is invalid: data: Too long: may not be more than 1048576 bytes`)
		d.helm("status", "large").Fails("Error: release: not found")
	})
}

// helm upgrade --install is run repeatedly, for example by a pipeline.
func TestHelmUpgradeInstall(t *testing.T) {
	withHelms(t, func(t *testing.T, d *desk) {
		for i := range 4 {
			d.helm("upgrade", "--install", "one", "desk", "--history-max=2", "--set", "extra=true").Contains("STATUS: deployed\n", "REVISION: "+string(rune('1'+i))+"\n")
		}
		d.was("one", "superseded: Upgrade complete", "deployed: Upgrade complete")
		d.kubectl("get", "lamp", "one", "-o", "jsonpath={.metadata.generation}").Want("1", "")
		d.kubectl("get", "secrets", "-l", "owner=helm", "-o", "name").Want("secret/sh.helm.release.v1.one.v3\nsecret/sh.helm.release.v1.one.v4\n", "")
	})
}

// A dry run in the server uses the existing objects, and changes nothing.
func TestHelmDryRun(t *testing.T) {
	withHelms(t, func(t *testing.T, d *desk) {
		d.helm("install", "one", "desk", "--dry-run=server").Contains("served: \"true\"\n", "lamps: \"0\"\n")
		d.has("")
		d.helm("install", "one", "desk").OK()
		before := d.kubectl("get", "lamps,configmaps,secrets", "-o", "jsonpath={.items[*].metadata.resourceVersion}").OK().Stdout
		d.helm("upgrade", "one", "desk", "--set", "color=blue,extra=true", "--dry-run=server").Contains("before: \"red\"\n", "lamps: \"2\"\n", "color: blue\n")
		d.kubectl("get", "lamps,configmaps,secrets", "-o", "jsonpath={.items[*].metadata.resourceVersion}").Want(before, "")
		d.helm("upgrade", "one", "desk", "--set", "gadget=true", "--dry-run=server").Fails(d.noGadget())
		d.was("one", "deployed: Install complete")
	})
}

// Hooks are ordinary objects, which Helm creates before or after the others, and deletes according to their policies.
func TestHelmHooks(t *testing.T) {
	withHelms(t, func(t *testing.T, d *desk) {
		revision := func(name, want string) {
			t.Helper()
			d.kubectl("get", "configmap", "one-"+name, "-o", "jsonpath={.data.revision}").Want(want, "")
		}
		d.helm("install", "one", "desk", "--no-hooks").OK()
		d.has("lamp.home.example.com/one configmap/one-config secret/one-secret")
		d.helm("test", "one").Contains("TEST SUITE:     one-test\n", "Phase:          Succeeded\n")
		revision("test", "1")
		d.helm("upgrade", "one", "desk").OK() // its hook is deleted after its success
		d.helm("rollback", "one", "1").OK()
		revision("pre-rollback", "1")
		d.helm("rollback", "one", "2").OK() // the old hook is deleted before
		revision("pre-rollback", "2")
		d.helm("test", "one").Contains("Phase:          Succeeded\n")
		revision("test", "2")
		d.has("lamp.home.example.com/one configmap/one-config configmap/one-pre-rollback configmap/one-test secret/one-secret")
		d.helm("uninstall", "one").OK()
		d.has("configmap/one-post-delete configmap/one-pre-rollback configmap/one-test")
	})
}

// Helm 3 considers an unknown kind ready. Helm 4 reads its conditions, which a controller must write.
func TestHelmWait(t *testing.T) {
	withHelms(t, func(t *testing.T, d *desk) {
		d.lightLamps()
		d.helm("install", "one", "desk", "--wait", "--timeout=50s").OK()
		d.helm("upgrade", "one", "desk", "--set", "color=blue", "--wait", "--timeout=50s").OK()
		if d.four() {
			d.kubectl("get", "lamp", "one", "-o", "jsonpath={.status.observedGeneration} {.status.conditions[0].status}").Want("2 True", "")
			d.helm("upgrade", "one", "desk", "--set", "color=broken", "--wait", "--timeout=3s").Fails("resource Lamp/" + d.namespace + "/one not ready. status: InProgress")
			d.helm("upgrade", "one", "desk", "--set", "color=broken,extra=true", "--rollback-on-failure", "--timeout=3s").
				Fails("release one failed, and has been rolled back due to rollback-on-failure being set")
			d.kubectl("get", "lamp", "one", "-o", "jsonpath={.spec.color} {.status.observedGeneration} {.status.conditions[0].status}").Want("blue 4 True", "")
			d.helm("upgrade", "one", "desk", "--wait=legacy", "--timeout=50s").OK()
			d.helm("rollback", "one", "1", "--wait", "--timeout=50s").OK()
		} else {
			d.helm("rollback", "one", "1", "--wait", "--timeout=50s").OK()
		}
		d.kubectl("patch", "lamp", "one", "--type=merge", "-p", `{"metadata":{"finalizers":["example.com/hold"]}}`).OK()
		uninstalling := d.program.Begin("uninstall", "one", "--wait", "--timeout=50s")
		harness.Eventually(t, "the lamp is being deleted", func() bool { return d.lamp("one", ".metadata.deletionTimestamp") != "" })
		if uninstalling.Exited() {
			t.Fatalf("helm uninstall did not wait for the finalizer: %s%s", uninstalling.Stdout, uninstalling.Stderr)
		}
		d.kubectl("patch", "lamp", "one", "--type=merge", "-p", `{"metadata":{"finalizers":null}}`).OK()
		if code := uninstalling.Wait(); code != 0 {
			t.Errorf("helm uninstall exited with %d: %s%s", code, uninstalling.Stdout, uninstalling.Stderr)
		}
	})
}

// If the server refuses an object, the upgrade fails. With a flag, Helm rolls back by itself.
func TestHelmFailures(t *testing.T) {
	withHelms(t, func(t *testing.T, d *desk) {
		const invalid = `Lamp.home.example.com "one" is invalid: spec.watts: Invalid value: 0: `
		const least = "should be greater than or equal to 1"
		reason := `cannot patch "one" with kind Lamp: `
		back := "--atomic"
		if d.four() {
			reason = "server-side apply failed for object " + d.namespace + "/one home.example.com/v1, Kind=Lamp: "
			back = "--rollback-on-failure"
		}
		d.helm("install", "one", "desk", "--set", "watts=0", back, "--timeout=50s").Fails(least)
		d.has("lamp.home.example.com/one-pre-install configmap/one-post-delete configmap/one-pre-install")

		d.helm("install", "one", "desk").OK()
		d.helm("upgrade", "one", "desk", "--set", "watts=0,extra=true").Fails("Error: UPGRADE FAILED: " + reason + invalid)
		d.helm("upgrade", "one", "desk", "--set", "watts=0,color=blue", back, "--timeout=50s").Fails(" and has been rolled back due to ")
		got := d.revisions("one")
		for i, want := range []string{"superseded: Install complete", `failed: Upgrade "one" failed: ` + reason + invalid, `failed: Upgrade "one" failed: ` + reason + invalid, "deployed: Rollback to 1"} {
			if i >= len(got) || !strings.HasPrefix(got[i], want) {
				t.Errorf("revision %d of %q, want %q", i+1, got, want)
			}
		}
		d.kubectl("get", "lamp", "one", "-o", "jsonpath={.spec.watts} {.spec.color}").Want("40 red", "")

		// An unknown field: with Helm 3 the server drops it with a warning. With Helm 4 it is refused.
		unknown := d.helm("upgrade", "one", "desk", "--set", "unknown=wats")
		if d.four() {
			unknown.Fails(reason + "failed to create typed patch object (" + d.namespace + "/one; home.example.com/v1, Kind=Lamp): .spec.wats: field not declared in schema")
		} else if unknown.OK(); !strings.Contains(unknown.Stderr, `unknown field \"spec.wats\"`) {
			t.Errorf("no warning of spec.wats: %s", unknown)
		}
		d.helm("upgrade", "one", "desk", "--set", "gadget=true").Fails(d.noGadget())
		d.helm("install", "one", "desk").Fails("a name that is still in use")

		d.kubectl("create", "configmap", "two-config", "--from-literal=mine=yes").OK()
		d.helm("install", "two", "desk").Fails(`ConfigMap "two-config" in namespace "` + d.namespace + `" exists and cannot be imported into the current release: invalid ownership metadata`)
		d.helm("install", "two", "desk", "--take-ownership").OK()
		d.kubectl("get", "configmap", "two-config", "-o", "jsonpath={.data.mine} {.data.color}").Contains(" red")
	})
}

// noGadget returns Helm's error for a kind that is not served. Helm first lists the CustomResourceDefinitions, and if these are
// not served either, that is its error.
func (d *desk) noGadget() string {
	if d.crd {
		return `no matches for kind "Gadget" in version "home.example.com/v1"`
	}
	return "failed to check CRD: failed to list CRDs: the server could not find the requested resource"
}
