/** What it costs to be watched: metrics of each request, and traces of none, of one in a hundred and of all. */
import { silentLog } from "../../src/base/log.ts";
import { createRequestStats } from "../../src/ops/request-stats.ts";
import { createOtlpTraces } from "../../src/traces/otlp-traces.ts";
import type { Traces } from "../../src/traces/traces.ts";
import type { Fixtures } from "./fixtures.ts";
import type { Step } from "./step.ts";

const SHARES = [
	["none", 0],
	["one in a hundred", 0.01],
	["all", 1],
] as const;
/** Spans that wait are bounded: more are dropped, as they would be under such a load. */
const SEND_EVERY_MS = 50;

export function watchSteps({ settled }: Fixtures): Step[] {
	const stats = createRequestStats();
	const receiver = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => new Response(null) });
	receiver.unref();
	let at = 0;
	const next = () => settled[at++ % settled.length] as (typeof settled)[number];
	// Whether a request is recorded goes by the id of its trace.
	const requests = Array.from({ length: 4_096 }, () => {
		const traceparent = `00-${crypto.randomUUID().replaceAll("-", "")}-b7ad6b7169203331-00`;
		return new Request("http://bench.example/v1/chat/completions", { method: "POST", headers: { traceparent } });
	});
	const traced = (traces: Traces) => () => {
		const event = next();
		const trace = traces.begin(requests[at % requests.length] as Request, "chat");
		const { id, model, account, key } = event;
		trace?.admitted({ id, requestId: id, model, account, key });
		trace?.call("bench#0", "openai").end(undefined, 200);
		trace?.answered(200);
		traces.settled(event);
		return trace;
	};
	return [
		{
			name: "metrics: a settled request",
			per: 1,
			run() {
				stats.record(next());
				return stats;
			},
		},
		{
			name: "metrics: a gap between two events",
			per: 1,
			run() {
				stats.gap(12);
				return stats;
			},
		},
		...SHARES.map(([label, ratio]) => ({
			name: `traces: a request, ${label} recorded`,
			per: 1,
			run: traced(
				createOtlpTraces(
					{ log: silentLog },
					{
						url: `http://127.0.0.1:${receiver.port}/v1/traces`,
						protocol: "http/protobuf",
						headers: {},
						sampler: "traceidratio",
						ratio,
						sendEveryMs: SEND_EVERY_MS,
						serviceName: "bench",
						attributes: {},
					},
				),
			),
		})),
	];
}
