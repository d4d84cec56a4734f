/** An OTLP collector over HTTP that keeps the spans of JSON bodies. */
import { waitFor } from "../support/wait.ts";

export interface SeenSpan {
	readonly traceId: string;
	readonly spanId: string;
	readonly parentSpanId?: string;
	readonly name: string;
	readonly kind: number;
	readonly attributes: Readonly<Record<string, string | number>>;
	readonly failed: boolean;
	readonly state: string;
}

interface JsonSpan extends Omit<SeenSpan, "attributes" | "failed" | "state"> {
	readonly traceState?: string;
	readonly status: { code: number };
	readonly attributes: readonly { key: string; value: { stringValue?: string; intValue?: number | string } }[];
}

export function startCollector() {
	const spans: SeenSpan[] = [];
	const posts: { headers: Headers; path: string; text: string }[] = [];
	let status = 200;
	const server = Bun.serve({
		port: 0,
		hostname: "127.0.0.1",
		async fetch(request) {
			const text = await request.text();
			posts.push({ headers: request.headers, path: new URL(request.url).pathname, text });
			if (status !== 200) return new Response("no", { status });
			if (request.headers.get("content-type") === "application/json") spans.push(...spansOf(text));
			return new Response("{}", { headers: { "content-type": "application/json" } });
		},
	});
	return {
		url: `http://127.0.0.1:${server.port}`,
		spans,
		posts,
		answer(next: number) {
			status = next;
		},
		async trace(traceId: string, count: number): Promise<SeenSpan[]> {
			const found = () => spans.filter((span) => span.traceId === traceId);
			await waitFor(() => found().length >= count, `${count} spans of ${traceId}`, 20_000);
			return found();
		},
		stop: () => void server.stop(true),
	};
}

function spansOf(text: string): SeenSpan[] {
	const { resourceSpans } = JSON.parse(text) as { resourceSpans: { scopeSpans: { spans: JsonSpan[] }[] }[] };
	return resourceSpans.flatMap(({ scopeSpans }) =>
		scopeSpans.flatMap(({ spans }) =>
			spans.map(({ attributes, status, traceState, ...span }) => ({
				...span,
				attributes: Object.fromEntries(
					attributes.map(({ key, value }) => [key, value.stringValue ?? Number(value.intValue)]),
				),
				failed: status.code === 2,
				state: traceState ?? "",
			})),
		),
	);
}
