/** Alerts and dashboards use existing metrics; each alert and each error has a page in the runbook. */
import { describe, expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import { Fault, type FaultCode } from "../../src/base/fault.ts";
import { errorResponse } from "../../src/gateway/error-body.ts";
import { temporaryFolder } from "../support/at-end.ts";
import { ask } from "../support/chat.ts";
import { withChat } from "../support/service.ts";
import { reply } from "../support/upstream-server.ts";

const ROOT = join(import.meta.dir, "../..");
const RULES = join(ROOT, "deploy/prometheus/tollgate.rules.yml");
const RUNBOOK = readFileSync(join(ROOT, "src/ops/runbook.md"), "utf8");
const PROMTOOL = Bun.which("promtool");

interface Rule {
	readonly alert: string;
	readonly expr: string;
	readonly for?: string;
	readonly labels: Readonly<Record<string, string>>;
}
const rules = (parse(readFileSync(RULES, "utf8")) as { groups: { rules: Rule[] }[] }).groups.flatMap((g) => g.rules);
const dashboard = JSON.parse(readFileSync(join(ROOT, "deploy/grafana/tollgate.json"), "utf8")) as {
	panels: { title: string; targets: { expr: string }[] }[];
};
const expressions = [
	...rules.map(({ expr }) => expr),
	...dashboard.panels.flatMap(({ targets }) => targets.map(({ expr }) => expr)),
];

const { upstream, service } = await withChat();

/** Names of the metrics of a service that has answered and refused requests, and Prometheus' own metric `up`. */
async function seriesNames(): Promise<Set<string>> {
	const { secret } = await service.customer();
	await service.post("/v1/chat/completions", secret, ask());
	await (await service.post("/v1/chat/completions", secret, ask("x", { stream: true }))).text();
	await service.post("/v1/chat/completions", secret, ask("x", { model: "nobody" }));
	const text = await (await service.get("/metrics")).text();
	const lines = text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
	return new Set(["up", ...lines.map((line) => /^[a-z_]+/.exec(line)?.[0] ?? "")]);
}

test("alerts and dashboards use only existing metrics", async () => {
	const names = await seriesNames();
	const named = expressions.flatMap((expr) => expr.match(/\b(?:tollgate|process)_[a-z_]+|\bup\b/g) ?? []);
	expect(named.length).toBeGreaterThan(30);
	expect([...new Set(named)].filter((name) => !names.has(name))).toEqual([]);
});

/** Metrics on which operators' dashboards depend, so that none may be removed. */
const WANTED = {
	requests: ["tollgate_requests_total", "tollgate_requests_open", "tollgate_requests_running"],
	tokens: ["tollgate_prompt_tokens_total", "tollgate_completion_tokens_total"],
	cost: ["tollgate_charged_nano_usd_total"],
	latency: ["tollgate_duration_seconds_bucket"],
	"time to first token": ["tollgate_first_token_seconds_bucket"],
	gaps: ["tollgate_event_gap_seconds_bucket"],
	queue: ["tollgate_requests_waiting"],
	"replica health": ["tollgate_replica_up", "tollgate_replicas"],
	breaker: ["tollgate_replica_breaker_open"],
	places: ["tollgate_replica_places", "tollgate_replica_in_flight"],
	grants: ["tollgate_grants_total", "tollgate_granted_nano_usd_total", "tollgate_returned_nano_usd_total"],
	recalls: ["tollgate_recalls_total"],
	holds: ["tollgate_credit_held_nano_usd", "tollgate_credit_free_nano_usd"],
	refusals: ["tollgate_errors_total"],
	journal: ["tollgate_journal_bytes", "tollgate_journal_segments"],
	settlements: ["tollgate_settlements_queued", "tollgate_oldest_unflushed_seconds"],
	flushes: ["tollgate_flush_seconds_bucket", "tollgate_flush_settlements_bucket", "tollgate_flush_failures_total"],
	lease: ["tollgate_lease_left_seconds", "tollgate_admitting"],
	reconciliation: ["tollgate_books_ok", "tollgate_books_age_seconds"],
	revocation: ["tollgate_revocation_seconds_bucket", "tollgate_revocations_late_total"],
	process: ["process_event_loop_lag_seconds", "process_heap_collections_total", "process_resident_memory_bytes"],
	connections: ["process_open_fds", "tollgate_streams_open"],
	notices: ["tollgate_mails_total", "tollgate_batch_notices_total"],
	processes: ["tollgate_worker_up"],
};

test("every metric that operators need exists", async () => {
	const names = await seriesNames();
	expect(
		Object.values(WANTED)
			.flat()
			.filter((name) => !names.has(name)),
	).toEqual([]);
});

test("the metric of stream gaps measures the time between the model server's events", async () => {
	const gaps = async () => {
		const text = await (await service.get("/metrics")).text();
		return ["count", "sum"].map((part) =>
			Number(new RegExp(`^tollgate_event_gap_seconds_${part} (\\S+)$`, "m").exec(text)?.[1]),
		) as [count: number, sum: number];
	};
	const { secret } = await service.customer();
	const [countBefore, sumBefore] = await gaps();
	await (await service.post("/v1/chat/completions", secret, ask())).text();
	expect(await gaps()).toEqual([countBefore, sumBefore]);
	const silence = Promise.withResolvers<void>();
	upstream.next(reply().text(["a", "b", "c"]).pauseAfter(1, silence.promise));
	const streamed = await service.post("/v1/chat/completions", secret, ask("x", { stream: true }));
	const reader = (streamed.body as ReadableStream<Uint8Array>).getReader();
	await reader.read();
	setTimeout(silence.resolve, 150);
	while (!(await reader.read()).done);
	const [count, sum] = await gaps();
	expect(count).toBeGreaterThan(countBefore);
	expect(sum - sumBefore).toBeGreaterThan(0.1);
});

test("counters are monotonic, and times are histograms in seconds", async () => {
	await seriesNames();
	const text = await (await service.get("/metrics")).text();
	const types = new Map([...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name, type]) => [name, type]));
	for (const [name, type] of types)
		expect([name, type === "counter"]).toEqual([name, name?.endsWith("_total") ?? false]);
	expect(types.get("tollgate_duration_seconds")).toBe("histogram");
	const buckets = [...text.matchAll(/^tollgate_duration_seconds_bucket\{le="([^"]+)"\} (\d+)$/gm)];
	expect(buckets.at(-1)?.[1]).toBe("+Inf");
	expect(buckets.map(([, , count]) => Number(count))).toEqual(
		buckets.map(([, , count]) => Number(count)).toSorted((a, b) => a - b),
	);
	expect(Number(/^tollgate_duration_seconds_count (\d+)$/m.exec(text)?.[1])).toBe(Number(buckets.at(-1)?.[2]));
	expect(Number(/^tollgate_duration_seconds_sum (\S+)$/m.exec(text)?.[1])).toBeLessThan(60);
});

describe("the operators' runbook has a page", () => {
	const pages = [...RUNBOOK.matchAll(/^### (\S+)$/gm)].map(([, name]) => name as string);

	test("for each alert, and for no other alert", () => {
		expect(pages.toSorted()).toEqual(rules.map(({ alert }) => alert).toSorted());
	});

	test("for each error with a status above 499", () => {
		const codes = [...readFileSync(join(ROOT, "src/base/fault.ts"), "utf8").matchAll(/^\t\| "([a-z_]+)"/gm)];
		const statuses = codes.map(([, code]) => ({
			code,
			status: errorResponse(new Fault(code as FaultCode, "x"), "").status,
		}));
		expect(statuses.length).toBeGreaterThan(25);
		const section = RUNBOOK.split("## Errors above 499")[1] ?? "";
		const listed = [...section.matchAll(/^\| `([a-z_]+)` \| (\d+) /gm)].map(([, code, status]) => ({
			code,
			status: Number(status),
		}));
		expect(listed).toEqual(statuses.filter(({ status }) => status >= 500).toSorted((a, b) => a.status - b.status));
	});

	test("for each message that is logged as an error", async () => {
		const said = new Set<string>();
		for (const path of new Bun.Glob("src/**/*.ts").scanSync(ROOT))
			for (const [, text] of readFileSync(join(ROOT, path), "utf8").matchAll(/log\.error\(\s*"([^"]+)"/g))
				said.add(text as string);
		const section = RUNBOOK.split("## Lines of the log")[1] ?? "";
		const listed = [...section.matchAll(/^\| ([^|`-][^|]*?) \| /gm)]
			.map(([, text]) => text as string)
			.filter((text) => text !== "line");
		expect(said.size).toBeGreaterThan(20);
		expect(listed.toSorted()).toEqual([...said].toSorted());
	});
});

/** Metric values that must make each alert fire. */
const FIRING: Readonly<Record<string, readonly string[]>> = {
	TollgateDown: ['up{job="tollgate", instance="a"} 0'],
	TollgateNotAdmitting: ['tollgate_admitting{instance="a"} 0'],
	TollgateSettlementsLate: ['tollgate_oldest_unflushed_seconds{instance="a"} 31'],
	TollgateBooksBroken: ['tollgate_books_ok{instance="a"} 0'],
	TollgatePaymentsOpen: ['tollgate_payment_findings_open{instance="a"} 1'],
	TollgateSettlementsRefused: ['tollgate_settlements_refused{instance="a"} 1'],
	TollgateActsLost: ['tollgate_acts_lost{instance="a"} 1'],
	TollgateBatchesRefused: ['tollgate_batches_refused{instance="a"} 1'],
	TollgateDiskFills: ['tollgate_disk_reserves{instance="a"} 3.9'],
	TollgateModelWithoutServers: [0, 1].map((n) => `tollgate_replica_up{instance="a", model="m", replica="m#${n}"} 0`),
	TollgateInternalErrors: ['tollgate_errors_total{instance="a", code="internal_error"} +1'],
	TollgateReplicaDown: ['tollgate_replica_up{instance="a", model="m", replica="m#0"} 0'],
	TollgateBreakerOpen: ['tollgate_replica_breaker_open{instance="a", model="m", replica="m#0"} 1'],
	TollgateUpstreamRefuses: ['tollgate_replica_refusals_total{instance="a", model="m", replica="m#0"} +1'],
	TollgateUsageContradicts: ['tollgate_replica_usage_contradictions_total{instance="a", model="m", replica="m#0"} +1'],
	TollgateUpstreamFailures: [
		'tollgate_requests_total{instance="a", model="m", ending="upstream_died"} +6',
		'tollgate_requests_total{instance="a", model="m", ending="finished"} +94',
	],
	TollgateRequestsWaiting: ['tollgate_requests_waiting{instance="a"} 51'],
	TollgateOverloaded: ['tollgate_errors_total{instance="a", code="overloaded"} +120'],
	TollgateFirstTokenSlow: [
		'tollgate_first_token_seconds_bucket{instance="a", le="10"} +90',
		'tollgate_first_token_seconds_bucket{instance="a", le="30"} +100',
		'tollgate_first_token_seconds_bucket{instance="a", le="+Inf"} +100',
	],
	TollgateRefusalsDropped: ['tollgate_refusals_dropped_total{instance="a"} +1'],
	TollgateWorkerDown: ['tollgate_worker_up{instance="a", worker="gateway-2"} 0'],
	TollgateBooksOld: ['tollgate_books_age_seconds{instance="a", worker="gateway-1"} 3700'],
	TollgateMailsFail: ['tollgate_mails_total{instance="a", outcome="failed"} +1'],
	TollgateNoticesFail: ['tollgate_batch_notices_total{instance="a", channel="webhook", outcome="failed"} +1'],
	TollgateRevocationsLate: ['tollgate_revocations_late_total{instance="a", worker="console"} +1'],
	TollgateMemory: ['process_resident_memory_bytes{job="tollgate", instance="a"} 2100000000'],
};
const WELL = [
	'up{job="tollgate", instance="a"} 1',
	'tollgate_admitting{instance="a"} 1',
	'tollgate_oldest_unflushed_seconds{instance="a"} 0.2',
	'tollgate_books_ok{instance="a"} -1',
	'tollgate_payment_findings_open{instance="a"} 0',
	'tollgate_settlements_refused{instance="a"} 0',
	'tollgate_batches_refused{instance="a"} 0',
	'tollgate_disk_reserves{instance="a"} 4.1',
	'tollgate_worker_up{instance="a", worker="gateway-1"} 1',
	'tollgate_books_age_seconds{instance="a"} 800',
	'tollgate_mails_total{instance="a", outcome="sent"} +1',
	'tollgate_mails_total{instance="a", outcome="failed"} 2',
	'tollgate_batch_notices_total{instance="a", channel="webhook", outcome="waiting"} +1',
	'tollgate_revocations_late_total{instance="a"} 0',
	'tollgate_replica_up{instance="a", model="m", replica="m#0"} 1',
	'tollgate_replica_breaker_open{instance="a", model="m", replica="m#0"} 0',
	'tollgate_replica_refusals_total{instance="a", model="m", replica="m#0"} 4',
	'tollgate_replica_usage_contradictions_total{instance="a", model="m", replica="m#0"} 4',
	'tollgate_errors_total{instance="a", code="internal_error"} 3',
	'tollgate_requests_total{instance="a", model="m", ending="upstream_died"} +1',
	'tollgate_requests_total{instance="a", model="m", ending="finished"} +99',
	'tollgate_first_token_seconds_bucket{instance="a", le="10"} +100',
	'tollgate_first_token_seconds_bucket{instance="a", le="+Inf"} +100',
	'tollgate_refusals_dropped_total{instance="a"} 7',
	'process_resident_memory_bytes{job="tollgate", instance="a"} 300000000',
];

const inputOf = (series: readonly string[]) =>
	series.map((line) => {
		const at = line.lastIndexOf(" ");
		const value = line.slice(at + 1);
		return { series: line.slice(0, at), values: value.startsWith("+") ? `0${value}x40` : `${value}+0x40` };
	});

async function promtool(command: readonly string[], files: Readonly<Record<string, unknown>>): Promise<string> {
	const folder = temporaryFolder();
	for (const [name, content] of Object.entries(files)) writeFileSync(join(folder, name), JSON.stringify(content));
	const run = Bun.spawn([PROMTOOL as string, ...command], { cwd: folder, stdout: "pipe", stderr: "pipe" });
	const output = (await new Response(run.stdout).text()) + (await new Response(run.stderr).text());
	if ((await run.exited) !== 0) throw new Error(output);
	return output;
}

describe.skipIf(PROMTOOL === null)("the tool promtool", () => {
	test("parses every expression of the dashboards", async () => {
		const panels = dashboard.panels.flatMap(({ targets }) => targets.map(({ expr }) => expr));
		const records = panels.map((expr, nth) => ({ record: `panel:${nth}`, expr: expr.replaceAll("$instance", ".*") }));
		expect(
			await promtool(["check", "rules", "panels.yml"], {
				"panels.yml": { groups: [{ name: "panels", rules: records }] },
			}),
		).toContain(`${panels.length} rules found`);
	});

	/**
	 * promtool accepts quantiles only in summaries. This gauge covers the time since the last scrape, which a summary
	 * cannot.
	 */
	const LAG = "event_loop_lag_seconds non-summary metrics";

	test("accepts /metrics, apart from units of money and the event loop's lag", async () => {
		await seriesNames();
		const run = Bun.spawn([PROMTOOL as string, "check", "metrics"], {
			stdin: await service.get("/metrics"),
			stdout: "pipe",
			stderr: "pipe",
		});
		const said = (await new Response(run.stdout).text()) + (await new Response(run.stderr).text());
		expect(said.split("\n").filter((line) => line !== "" && !line.includes("nano_usd") && !line.includes(LAG))).toEqual(
			[],
		);
	});

	test("fires each alert on its series, and none on a healthy service", async () => {
		expect(Object.keys(FIRING).toSorted()).toEqual(rules.map(({ alert }) => alert).toSorted());
		const firing = (alert: string) => `count(ALERTS{alertname=~"${alert}", alertstate="firing"})`;
		const fires = rules.map(({ alert }) => ({
			interval: "1m",
			input_series: inputOf(FIRING[alert] ?? []),
			promql_expr_test: [{ expr: firing(alert), eval_time: "30m", exp_samples: [{ labels: "{}", value: 1 }] }],
		}));
		const well = {
			interval: "1m",
			input_series: inputOf(WELL),
			promql_expr_test: [{ expr: firing(".*"), eval_time: "30m", exp_samples: [] }],
		};
		const output = await promtool(["test", "rules", "tests.yml"], {
			"tests.yml": { rule_files: [RULES], evaluation_interval: "1m", tests: [well, ...fires] },
		});
		expect(output).toContain("SUCCESS");
	});
});
