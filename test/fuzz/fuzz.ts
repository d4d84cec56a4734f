import { reconcile } from "../../src/ledger/reconciler.ts";
import type { Product } from "../attack/product.ts";
import type { Steps } from "../attack/steps.ts";
import { createRandom, type Random } from "../support/random.ts";
import { openRaw } from "../support/raw-http.ts";
import { waitFor } from "../support/wait.ts";
import { audioInput, formInput, jsonInput } from "./inputs.ts";
import { mutated } from "./mutate.ts";
import { TARGETS } from "./targets.ts";

export const KINDS = ["json", "forms", "raw", "audio", "answers"] as const;
export type Kind = (typeof KINDS)[number];

export interface Tally {
	tried: number;
	/** Numbers of answers by status class; `closed` counts connections without an answer. */
	readonly answers: Record<string, number>;
	/** Number of event-loop steps with more than 50 ms of CPU time. */
	gaps: number;
	worstMs: number;
}

export interface Report {
	readonly tallies: Record<Kind, Tally>;
	/** Violations, each with the input that caused it. */
	readonly defects: string[];
}

export interface FuzzPlan {
	readonly seed: number;
	/** Minimum number of inputs. After them the run continues until its time has passed. */
	readonly inputs: number;
	readonly msAKind: number;
	readonly steps: Steps;
	readonly concurrency: number;
}

const GAP_MS = 50;
const ANSWER_MS_MAX = 30_000;
/** A raw connection that receives nothing for this long is finished. */
const QUIET_MS = 60;

export async function fuzz(product: Product, plan: FuzzPlan): Promise<Report> {
	const report: Report = {
		tallies: Object.fromEntries(
			KINDS.map((kind) => [kind, { tried: 0, answers: {}, gaps: 0, worstMs: 0 }]),
		) as Report["tallies"],
		defects: [],
	};
	const random = createRandom(plan.seed);
	for (const kind of KINDS) {
		const secrets = await Promise.all(Array.from({ length: 4 }, () => product.secret("1000")));
		const untilMs = performance.now() + plan.msAKind;
		const tally = report.tallies[kind];
		await plan.steps.taken(product);
		const lane = async (own: Random) => {
			while (tally.tried < plan.inputs || performance.now() < untilMs) {
				tally.tried += 1;
				if (product.serve.hasExited()) return;
				await one(product, kind, own, own.pick(secrets), report);
			}
		};
		await Promise.all(Array.from({ length: plan.concurrency }, () => lane(random.fork())));
		const gaps = await plan.steps.taken(product);
		tally.gaps = gaps.filter((ms) => ms > GAP_MS).length;
		tally.worstMs = Math.round(gaps.reduce((worst, ms) => Math.max(worst, ms), 0));
		if (product.serve.hasExited()) report.defects.push(`${kind}: the process ended`);
	}
	report.defects.push(...(await brokenBooks(product)), ...logged(product));
	return report;
}

async function one(product: Product, kind: Kind, random: Random, secret: string, report: Report): Promise<void> {
	const tally = report.tallies[kind];
	const count = (what: string) => {
		tally.answers[what] = (tally.answers[what] ?? 0) + 1;
	};
	const defect = (what: string, input: Uint8Array | string) =>
		void report.defects.push(`${kind}: ${what} by ${Buffer.from(input).toString("base64").slice(0, 4_000)}`);

	if (kind === "raw") {
		const bytes = rawShape(random, secret);
		const statuses = await rawStatuses(product.url, bytes);
		for (const status of statuses) count(`${status[0]}xx`);
		if (statuses.length === 0) count("closed");
		// Ignored, because the runtime answers 505 to an unsupported HTTP version.
		if (statuses.some((status) => status >= "500" && status !== "505"))
			defect(`answered ${statuses.join(", ")}`, bytes);
		return;
	}
	const { path, init, input } = requestOf(kind, random);
	const headers = { ...(init.headers as Record<string, string>), authorization: `Bearer ${secret}` };
	try {
		const signal = AbortSignal.timeout(ANSWER_MS_MAX);
		const response = await fetch(`${product.url}${path}`, { ...init, method: "POST", headers, signal });
		const text = await response.text();
		count(`${String(response.status)[0]}xx`);
		// A wrong answer of a model server may cause a 5xx, but not a 500.
		const ours = kind === "answers" ? response.status === 500 : response.status >= 500;
		if (ours || text.includes('"internal_error"')) defect(`answered ${response.status} ${text.slice(0, 300)}`, input);
		else if (response.status >= 400 && !/^\{"error":\{"message":".+","type":/.test(text))
			defect(`answered in another shape: ${text.slice(0, 300)}`, input);
	} catch (error) {
		count("closed");
		defect(`no answer: ${error}`, input);
	}
}

function requestOf(
	kind: Exclude<Kind, "raw">,
	random: Random,
): { path: string; init: RequestInit; input: Uint8Array | string } {
	if (kind === "audio") {
		const { form, bytes } = audioInput(random);
		return { path: "/v1/audio/transcriptions", init: { body: form }, input: bytes };
	}
	if (kind === "answers") {
		const { name, path, model, request } = random.pick(TARGETS);
		const body = request(`lying-${model}`);
		if (body instanceof FormData) return { path, init: { body }, input: name };
		return { path, init: { headers: { "content-type": "application/json" }, body: JSON.stringify(body) }, input: name };
	}
	const { path, contentType, body } = kind === "json" ? jsonInput(random) : formInput(random);
	return { path, init: { headers: { "content-type": contentType }, body }, input: body };
}

/** Statuses of all answers on a connection, until it is closed or idle. */
async function rawStatuses(url: string, bytes: Uint8Array): Promise<string[]> {
	const client = await openRaw(url, bytes);
	let length = 0;
	let sinceMs = performance.now();
	const isQuiet = () => {
		const now = client.text().length;
		if (now !== length) {
			length = now;
			sinceMs = performance.now();
		}
		return performance.now() - sinceMs > QUIET_MS;
	};
	await Promise.race([client.ended(ANSWER_MS_MAX).catch(() => {}), waitFor(isQuiet, "quiet", ANSWER_MS_MAX)]);
	const text = client.text();
	client.leave();
	return [...text.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map((found) => found[1] as string);
}

/** Waits for all settlements. Checks that the books reconcile and that refused requests are free. */
async function brokenBooks({ db }: Product): Promise<string[]> {
	await waitFor(
		async () => (await db.sql`select count(*)::int as n from reservation`)[0]?.n === 0,
		"everything to be settled",
		ANSWER_MS_MAX,
	);
	const { checks } = await reconcile(db.statements);
	const charged = await db.sql`select request_id, status, charged_nano_usd from usage_event
		where status >= 400 and first_token_ms is null and charged_nano_usd > 0 limit 5`;
	return [
		...checks.filter(({ ok }) => !ok).map((check) => `books: ${JSON.stringify(check)}`),
		...charged.map((row) => `books: charged and refused: ${JSON.stringify(row)}`),
	];
}

/** Internal errors that the process has logged. */
function logged({ serve }: Product): string[] {
	return serve.lines
		.filter(({ level }) => level === "error" || level === "raw")
		.map((line) => `log: ${JSON.stringify(line).slice(0, 600)}`);
}

/** Requests that no client library would send: contradictory framing, endless headers, pipelined requests. */
function rawShape(random: Random, secret: string): Uint8Array {
	const body = JSON.stringify({ model: "chat", messages: [{ role: "user", content: "hi" }] });
	const path = random.pick([
		"/v1/chat/completions",
		"/v1/embeddings",
		"/v1/models",
		"/livez",
		"/v1/audio/transcriptions",
	]);
	const auth = `Authorization: Bearer ${secret}\r\n`;
	const base = `POST ${path} HTTP/1.1\r\nHost: x\r\n${auth}Content-Type: application/json\r\n`;
	const plain = `${base}Content-Length: ${body.length}\r\n\r\n${body}`;
	const get = `GET /v1/models HTTP/1.1\r\nHost: x\r\n${auth}\r\n`;
	const chunk = (text: string) => `${text.length.toString(16)}\r\n${text}\r\n`;
	const long = random.int(1, 40_000);
	const shapes: readonly (() => string)[] = [
		() => `${base}Content-Length: ${body.length}\r\nTransfer-Encoding: chunked\r\n\r\n${chunk(body)}0\r\n\r\n${get}`,
		() => `${base}Content-Length: 5\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
		() =>
			`${base}Content-Length: ${random.pick(["-1", "+5", "0x10", "5, 5", "1e3", " 5", "99999999999999999999", "NaN", ""])}\r\n\r\n${body}`,
		() =>
			`${base}Transfer-Encoding: ${random.pick(["chunked, chunked", "xchunked", "gzip, chunked", " chunked", "Chunked", "identity", "chunked\t", "\vchunked"])}\r\n\r\n${chunk(body)}0\r\n\r\n`,
		() => `${base}Transfer-Encoding : chunked\r\n\r\n${chunk(body)}0\r\n\r\n`,
		() =>
			`${base}Transfer-Encoding: chunked\r\n\r\n${random.pick(["-1", "ffffffffffffffff", "g", "", "5;x=y", "0x5", "5 ", " 5", "0".repeat(300)])}\r\n${body}\r\n0\r\n\r\n`,
		() => `${base}Transfer-Encoding: chunked\r\n\r\n${body.length.toString(16)}\r\n${body}XX0\r\n\r\n`,
		() => `${base}Transfer-Encoding: chunked\r\n\r\n${chunk(body)}0\r\nX-Trailer: ${"t".repeat(long)}\r\n\r\n`,
		() => `${base}Transfer-Encoding: chunked\n\n${chunk(body)}0\n\n`,
		() => `${base}X-Long: ${"v".repeat(long)}\r\n\r\n`,
		() => `${base}${Array.from({ length: long % 3_000 }, (_, at) => `X-${at}: v\r\n`).join("")}\r\n`,
		() => `POST ${path}${"/a".repeat(long)} HTTP/1.1\r\nHost: x\r\n${auth}\r\n`,
		() => `POST ${path}?${"%".repeat(long % 500)}\0 HTTP/1.1\r\nHost: x\r\n${auth}\r\n`,
		() => `${base} folded: yes\r\n\tX: y\r\n\r\n`,
		() => `${base}X-Nul: a\0b\r\nX-Bad\x01: \x7f\r\n\r\n`,
		() => `${base}: no name\r\n\r\n`,
		() =>
			`GET ${random.pick(["*", "//", "http://[", "http://x:99999/", "/%00", "/%ff%fe", "/../../etc", "\\v1\\models", "/v1/usage/%00", "/v1/models/%c0%80"])} HTTP/1.1\r\nHost: x\r\n${auth}\r\n`,
		() =>
			`GET /v1/models HTTP/1.1\r\nHost: ${random.pick(["", "[", "a b", "x:y", "é", "x\r\nHost: y", "x".repeat(long), "x/../y", "@"])}\r\n${auth}\r\n`,
		() => `GET /v1/models HTTP/${random.pick(["0.9", "1.0", "2.0", "9.9", "1", "1.1.1", ""])}\r\n${auth}\r\n`,
		() =>
			`${random.pick(["TRACE", "CONNECT", "OPTIONS", "PRI", "DELETE", "get", "M-SEARCH", "X".repeat(long), ""])} ${path} HTTP/1.1\r\nHost: x\r\n${auth}\r\n`,
		() => "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0",
		() => `${base}Expect: 100-continue\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
		() =>
			`${base}Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n`,
		() =>
			`GET /v1/models HTTP/1.1\r\nHost: x\r\nAuthorization: ${random.pick(["Bearer", "Bearer  ", "Basic x", `Bearer ${"k".repeat(long)}`, "Bearer \xff\xfe", `Bearer ${secret},x`])}\r\n\r\n`,
		() => get.repeat(random.int(2, 30)),
		() => plain.repeat(random.int(2, 5)) + get,
		() => `${plain}garbage ${get}`,
		() => plain.slice(0, random.int(0, plain.length)),
		() => `\r\n\r\n\r\n${get}`,
	];
	const made = Buffer.from(random.pick(shapes)(), "latin1");
	return random.chance(0.3) ? mutated(made, random) : made;
}
