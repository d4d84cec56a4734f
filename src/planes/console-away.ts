/** What people see while the console's process is away. It asks again by itself. */
const STYLE = `
:root { color-scheme: light dark; font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif;
	background: light-dark(#fff, #15181b); color: light-dark(#1f2328, #d5d9dd); }
body { max-width: 34rem; margin: 20vh auto 0; padding: 0 1rem; }
h1 { font-size: 1.35rem; margin: 0 0 .5rem; }
p { margin: 0 0 .5rem; color: light-dark(#586069, #9aa4ad); }
a { color: light-dark(#17637f, #7bb9d0); }
`;
const POLICY = [
	"default-src 'none'",
	`style-src 'sha256-${new Bun.CryptoHasher("sha256").update(STYLE).digest("base64")}'`,
	"base-uri 'none'",
	"form-action 'none'",
	"frame-ancestors 'none'",
].join("; ");
const RETRY_S = 2;

const PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="refresh" content="${RETRY_S}">
<title>The console is restarting</title>
<style>${STYLE}</style>
</head>
<body>
<h1>The console is restarting</h1>
<p>This page asks again by itself. Inference is not affected: requests with an API key are answered as ever.</p>
<p><a href="/status">Status of the service</a></p>
</body>
</html>
`;

export function consoleAwayPage(requestId: string): Response {
	return new Response(PAGE, {
		status: 503,
		headers: {
			"content-type": "text/html; charset=utf-8",
			"cache-control": "no-store",
			"content-security-policy": POLICY,
			"referrer-policy": "no-referrer",
			"retry-after": String(RETRY_S),
			"x-content-type-options": "nosniff",
			"x-frame-options": "DENY",
			"x-request-id": requestId,
		},
	});
}
