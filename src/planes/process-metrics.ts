import { createHash, timingSafeEqual } from "node:crypto";
import type { Cleanup } from "../base/cleanup.ts";
import type { Config } from "../config.ts";
import { isLoopback } from "../gateway/client-address.ts";
import type { Connection } from "../gateway/connection.ts";
import { createMetrics, type MetricHistogram, type MetricReading, type Metrics } from "../ops/metrics.ts";
import { countCollections, lagReadings, processReadings, startLoopLag } from "../ops/process-readings.ts";
import { consoleSocket, gatewaySocket, METRICS_HEADER, METRICS_PATH } from "./run-dir.ts";

/** Metrics text of another process; `text` is undefined if the process did not answer before the deadline. */
export interface ProcessMetrics {
	/** Value of the label `worker`. */
	readonly worker: string;
	readonly text: string | undefined;
}

/** Metrics of a plane and its process. `lagName` differs between planes, so that autoscaling needs no filter. */
export function createProcessMetrics(
	{ cleanup }: { cleanup: Cleanup },
	of: { readings: readonly MetricReading[]; histograms: readonly MetricHistogram[]; lagName: string },
	labels: Readonly<Record<string, string>>,
): Metrics {
	const lag = startLoopLag();
	cleanup.add(() => lag.stop());
	const own = [...lagReadings(lag.read, of.lagName), ...processReadings(countCollections())];
	return createMetrics([...own, ...of.readings], of.histograms, labels);
}

/** Longest time that a scrape waits for other processes. */
const ANSWER_MS_MAX = 1_000;
const CONSOLE = "console";

export function workerLabel(config: Pick<Config, "runDir" | "workerIndex" | "role">): Record<string, string> {
	if (config.runDir === null) return {};
	return { worker: config.role === CONSOLE ? CONSOLE : gatewayName(config.workerIndex ?? 1) };
}

const gatewayName = (slot: number) => `gateway-${slot}`;

/** Requests the metrics of all other processes of this `serve`, in parallel. */
export function fetchOtherMetrics(
	config: Pick<Config, "workers" | "workerIndex">,
	runDir: string,
): () => Promise<ProcessMetrics[]> {
	const slots = Array.from({ length: config.workers }, (_, at) => at + 1).filter(
		(slot) => slot !== (config.workerIndex ?? 1),
	);
	const places = [
		...slots.map((slot) => ({ worker: gatewayName(slot), socket: gatewaySocket(runDir, slot) })),
		{ worker: CONSOLE, socket: consoleSocket(runDir) },
	];
	return () => Promise.all(places.map(async ({ worker, socket }) => ({ worker, text: await ask(socket) })));
}

async function ask(socket: string): Promise<string | undefined> {
	const signal = AbortSignal.timeout(ANSWER_MS_MAX);
	const headers = { [METRICS_HEADER]: "yes" };
	const init = { unix: socket, headers, signal, keepalive: false, proxy: false } as BunFetchRequestInit;
	try {
		const response = await fetch(`http://process${METRICS_PATH}`, init);
		return response.ok ? await response.text() : undefined;
	} catch {
		return undefined;
	}
}

/** True if a request on a process's socket is a request for its metrics. */
export function isMetricsRequest(request: Request): boolean {
	return request.headers.has(METRICS_HEADER) && new URL(request.url).pathname === METRICS_PATH;
}

export async function metricsResponse(metrics: Metrics): Promise<Response> {
	return new Response(await metrics.text(), {
		headers: { "content-type": metrics.contentType, "cache-control": "no-store" },
	});
}

/** Merges the metrics of all processes, so that scraping any one process is enough. */
export function metricsOfAll(
	own: Metrics,
	others: () => Promise<readonly ProcessMetrics[]>,
	{ worker }: { readonly worker?: string },
): Metrics {
	return {
		contentType: own.contentType,
		async text() {
			const [text, asked] = await Promise.all([own.text(), others()]);
			const answered = asked.flatMap((other) => other.text ?? []);
			const up = [
				...(worker === undefined ? [] : [{ worker, value: 1 }]),
				...asked.map((other) => ({ worker: other.worker, value: Number(other.text !== undefined) })),
			];
			return mergeExpositions([text, ...answered, upText(up)]);
		},
	};
}

function upText(up: readonly { readonly worker: string; readonly value: number }[]): string {
	if (up.length === 0) return "";
	const name = "tollgate_worker_up";
	const samples = up.map(({ worker, value }) => `${name}{worker="${worker}"} ${value}`);
	return `# HELP ${name} 1 if the process answered this scrape.\n# TYPE ${name} gauge\n${samples.join("\n")}\n`;
}

/** Puts all series of a metric below one header (https://prometheus.io/docs/instrumenting/exposition_formats/). */
function mergeExpositions(texts: readonly string[]): string {
	const families = new Map<string, { readonly head: string; samples: string }>();
	for (const text of texts) {
		for (const [, name = "", head = "", samples = ""] of text.matchAll(FAMILY)) {
			const known = families.get(name);
			if (known === undefined) families.set(name, { head, samples: ended(samples) });
			else known.samples += ended(samples);
		}
	}
	return [...families.values()].map(({ head, samples }) => head + samples).join("\n");
}

/** Matches a header of two lines, and the samples up to the next header. */
const FAMILY = /(?<=^|\n)(?=# HELP (\S+))(# HELP [^\n]*\n# TYPE [^\n]*\n)((?:[^#\n][^\n]*(?:\n|$))*)/g;

const ended = (samples: string) => (samples === "" || samples.endsWith("\n") ? samples : `${samples}\n`);

export type MetricsAccess = Pick<Config, "metricsToken">;

/** Requires the token if one is set. Otherwise allows only this machine, and no proxy on it. */
export function mayReadMetrics(
	{ metricsToken }: MetricsAccess,
	{ request: { headers }, address }: Connection,
): boolean {
	if (metricsToken === null) {
		return isLoopback(address) && !headers.has("x-forwarded-for") && !headers.has("forwarded");
	}
	return isSameSecret(headers.get("authorization") ?? "", `Bearer ${metricsToken}`);
}

/** Compares two texts in constant time, which reveals neither a common start nor their lengths. */
function isSameSecret(given: string, expected: string): boolean {
	return timingSafeEqual(sha256(given), sha256(expected));
}

const sha256 = (text: string): Buffer => createHash("sha256").update(text).digest();
