package structural_test

import (
	"fmt"
	"sync"
	"testing"

	"k8s.io/kube-openapi/pkg/validation/strfmt"
)

// TestFormats compares every format with that of kube-openapi. Each format accepts at least one of the texts.
func TestFormats(t *testing.T) {
	texts := []string{
		"", "x", "507f1f77bcf86cd799439011", "Zm9v", "10.0.0.0/8", "4111111111111111", "2020-01-02", "2020-13-02", "2020-01-02T03:04:05Z",
		"2020-01-02T03:04:05.123+01:00", "2020-01-02t03:04:05z", "2020-01-02T24:04:05Z", "2020-02-30T03:04:05Z", "1h", "3 days", "a@b.co", "#fff",
		"example.com", "-a", "10.0.0.1", "::1", "0321751043", "978-0321751041", "a.b-c", "a-b", "01:23:45:67:89:ab", "rgb(1,2,3)", "111-11-1111",
		"http://x/y", "a8098c1a-f86e-31da-bd1a-00112444be1e", "a8098c1a-f86e-41da-9d1a-00112444be1e", "a8098c1a-f86e-51da-9d1a-00112444be1e",
	}
	for _, format := range []string{
		"bsonobjectid", "byte", "cidr", "creditcard", "date", "date-time", "datetime", "duration", "email", "hexcolor", "hostname", "ipv4", "ipv6",
		"isbn", "isbn10", "isbn13", "k8s-long-name", "k8s-short-name", "mac", "password", "rgbcolor", "ssn", "uri", "uuid", "uuid3", "uuid4", "uuid5",
		"binary", "int32", "unheard", "da-te",
	} {
		s := mustCompile(t, fmt.Sprintf(`{"type":"string","format":%q}`, format))
		known := strfmt.Default.ContainsName(format)
		taken := 0
		for _, text := range texts {
			want := !known || strfmt.Default.Validates(format, text)
			if got := len(s.Validate(nil, text)) == 0; got != want {
				t.Errorf("%q as %s: %t, want %t", text, format, got, want)
			}
			if want {
				taken++
			}
		}
		if taken == 0 || known && taken == len(texts) && format != "password" {
			t.Errorf("%s: %d texts of %d are taken, which says nothing", format, taken, len(texts))
		}
	}
}

// TestConcurrentUse uses a schema concurrently while its regular expressions are compiled.
func TestConcurrentUse(t *testing.T) {
	for range 20 {
		s, object := mustCompile(t, widgetSchema()), widget(t)
		var users sync.WaitGroup
		for range 8 {
			users.Go(func() {
				if errs := s.Validate(nil, object); len(errs) > 0 {
					t.Error(errs)
				}
				s.CheckLists(nil, object)
				s.ValidateEmbedded(nil, object)
			})
		}
		users.Wait()
	}
}
