package report

import "testing"

func TestFormats(t *testing.T) {
	for _, tt := range []struct{ got, want string }{
		{seconds(0), "0"},
		{seconds(1.234e-7), "0.12 µs"},
		{seconds(12.34e-6), "12.3 µs"},
		{seconds(999.4e-6), "999 µs"},
		{seconds(999.6e-6), "1.00 ms"},
		{seconds(0.1234), "123 ms"},
		{seconds(0.9996), "1.00 s"},
		{seconds(65), "65.0 s"},
		{bytesText(999), "999 B"},
		{bytesText(1000), "0.98 KiB"},
		{bytesText(1536), "1.50 KiB"},
		{bytesText(23.5 * (1 << 30)), "23.5 GiB"},
		{bytesText(5000 * (1 << 30)), "5000 GiB"},
		{bytesText(-2048), "-2.00 KiB"},
		{count(7), "7"},
		{count(7.25), "7.25"},
		{count(999), "999"},
		{count(1000), "1,000"},
		{count(1234567.8), "1,234,568"},
		{ratioText(0.0238), "0.024"},
		{ratioText(0.25), "0.25"},
		{ratioText(12.34), "12.3"},
		{fraction(1. / 42), "1/42"},
		{fraction(2. / 5), "2/5"},
		{fraction(2. / 3), "2/3"},
		{fraction(1.25), "1.25"},
		{fraction(0.123456), "0.12"},
		{joined([]string{dash, dash}), dash},
		{joined([]string{dash, "1"}), "– / 1"},
	} {
		if tt.got != tt.want {
			t.Errorf("got %q, want %q", tt.got, tt.want)
		}
	}
}
