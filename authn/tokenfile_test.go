package authn_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/keelson-dev/keelson/authn"
)

// TestReadTokens compares with the users that kube-apiserver 1.37.1 found in the same file, by their SelfSubjectReview.
func TestReadTokens(t *testing.T) {
	const file = "dup,first,1\n" +
		"dup,second,2\n" +
		",empty,3\n" +
		"spaces,s,3,\"a, b,,c\"\n" +
		"onegroup,o,4,dev\n" +
		"nogroup,n,5,\"\"\n" +
		" lead,l,6\r\n" +
		"\"qu\"\"oted\",q,7\n" +
		"more,m,8,\"a,b\",c,d\n" +
		"\n" +
		"#x,y,z\n" +
		"nouid,nouid,\n" +
		"\"multi\nline\",ml,3\n" +
		"dup,third,3"
	users, warnings, err := authn.ReadTokens(strings.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]authn.User{
		"dup":         {Name: "third", UID: "3"},
		"spaces":      {Name: "s", UID: "3", Groups: []string{"a", " b", "", "c"}},
		"onegroup":    {Name: "o", UID: "4", Groups: []string{"dev"}},
		"nogroup":     {Name: "n", UID: "5", Groups: []string{""}},
		" lead":       {Name: "l", UID: "6"},
		`qu"oted`:     {Name: "q", UID: "7"},
		"more":        {Name: "m", UID: "8", Groups: []string{"a", "b"}},
		"#x":          {Name: "y", UID: "z"},
		"nouid":       {Name: "nouid"},
		"multi\nline": {Name: "ml", UID: "3"},
	}
	if diff := cmp.Diff(want, users); diff != "" {
		t.Error(diff)
	}
	wantWarnings := []string{
		"line 2 has the token of line 1 and replaces it",
		"line 3 has an empty token and is skipped",
		"line 15 has the token of line 2 and replaces it",
	}
	if diff := cmp.Diff(wantWarnings, warnings); diff != "" {
		t.Error(diff)
	}
	if users, warnings, err := authn.ReadTokens(strings.NewReader("")); len(users) != 0 || warnings != nil || err != nil {
		t.Errorf("an empty file: %v, %q, %v", users, warnings, err)
	}
}

func TestReadTokensRefuses(t *testing.T) {
	for _, c := range []struct{ name, file, want string }{
		{"two columns", "good,u,1\ns3cret,u\n", "token file: line 2 has 2 of the at least 3 columns"},
		{"one column", "s3cret\n", "token file: line 1 has 1 of the at least 3 columns"},
		{"no user", "good,u,1\n\ns3cret,,1\n", "token file: line 3 has an empty user name"},
		{"text after a quote", "good,u,1\ns3cret,u,1,\"a\"x\n", "token file: parse error on line 2"},
		{"a quote within a field", "s3\"cret,u,1\n", "token file: parse error on line 1"},
		{"an open quote", "\"s3cret,u,1\n", "token file: parse error on line 1"},
		{"too large", strings.Repeat("s3cret,u,1\n", 2<<20), "token file: it is larger than 16777216 bytes"},
		{"one line, too large", strings.Repeat("s3cret", 3<<20), "token file: it is larger than 16777216 bytes"},
	} {
		users, warnings, err := authn.ReadTokens(strings.NewReader(c.file))
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one that begins with %q", c.name, err, c.want)
			continue
		}
		if users != nil || warnings != nil || strings.Contains(err.Error(), "s3") {
			t.Errorf("%s: users %v, warnings %q, error %v", c.name, users, warnings, err)
		}
	}
	broken := io.MultiReader(strings.NewReader("good,u,1\n"), failing{})
	if _, _, err := authn.ReadTokens(broken); !errors.Is(err, errRead) {
		t.Errorf("error %v, want the reader's", err)
	}
}

var errRead = errors.New("the disk is gone")

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errRead }

// TestReadTokensBoundsWarnings checks that the warnings about a file with many mistakes are bounded.
func TestReadTokensBoundsWarnings(t *testing.T) {
	_, warnings, err := authn.ReadTokens(strings.NewReader(strings.Repeat(",,\n", 150)))
	if err != nil || len(warnings) != 101 || warnings[100] != "50 more lines are skipped or replace earlier ones" {
		t.Errorf("%d warnings, the last is %q, error %v", len(warnings), warnings[len(warnings)-1], err)
	}
}

// TestReadTokensOfTheLargestFile checks that every line of a file of the maximum size is read.
func TestReadTokensOfTheLargestFile(t *testing.T) {
	file := strings.Repeat("#", authn.MaxTokenFileBytes-len(",u,1\nlast,l,2")) + ",u,1\nlast,l,2"
	users, _, err := authn.ReadTokens(strings.NewReader(file))
	if err != nil || users["last"].Name != "l" || len(users) != 2 {
		t.Errorf("%d users, error %v", len(users), err)
	}
}

func FuzzReadTokens(f *testing.F) {
	f.Add("t,u,1,\"a,b\"\n")
	f.Add("\"t\n\",u,1\n,,\n")
	f.Fuzz(func(t *testing.T, file string) {
		users, warnings, err := authn.ReadTokens(strings.NewReader(file))
		if err != nil && (users != nil || warnings != nil) {
			t.Errorf("users %v and error %v", users, err)
		}
		for token, u := range users {
			if token == "" || u.Name == "" {
				t.Errorf("token %q is that of %+v", token, u)
			}
		}
	})
}
