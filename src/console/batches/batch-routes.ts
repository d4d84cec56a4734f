import { t } from "elysia";
import { pauses } from "../../base/de.json";
import { Fault, type FaultCode } from "../../base/fault.ts";
import { ENGLISH, type Language, requestLanguage } from "../../base/language.ts";
import { forwardBody } from "../../base/passed-body.ts";
import { translate } from "../../base/translate.ts";
import { BATCH_ENDPOINTS, type BatchPause, type BatchRecord } from "../../batch/batch-record.ts";
import { idOf, pageFrom } from "../../db/page.ts";
import type { Statements } from "../../db/statements.ts";
import { type Connection, IDLE_TIMEOUT_S, STREAM_TIMEOUT_S } from "../../gateway/connection.ts";
import type { KeyDigest } from "../../keys/secret.ts";
import { accountRoutes, PAGE_QUERY, type Parts } from "../console-deps.ts";
import { ConsoleError } from "../console-error.ts";
import { usableKeyDigest } from "../keys/key-routes.ts";

export function batchRoutes(parts: Parts<"statements" | "gateways" | "sessions">) {
	const { statements, sessions } = parts;

	async function find(request: Request, id: string) {
		const { accountId } = sessions.account(request);
		const language = requestLanguage(request.headers);
		const [batch] = await readBatches(statements, accountId, { id, after: null, asked: 1, language });
		if (batch === undefined) throw new ConsoleError("not_found", "There is no such batch.");
		return batch;
	}

	return accountRoutes(parts, "console-batches", "/batches")
		.get(
			"/",
			({ member: { accountId }, request, query }) => {
				const wanted = { id: null, language: requestLanguage(request.headers) };
				return pageFrom(query, (page) => readBatches(statements, accountId, { ...wanted, ...page }), idOf);
			},
			{ query: t.Object(PAGE_QUERY) },
		)
		.guard({ schema: "standalone", params: t.Object({ id: t.String({ pattern: "^[\\w-]{1,64}$" }) }) })
		.get("/:id", ({ request, params }) => find(request, params.id))
		.post("/:id/cancel", async ({ member: { connection }, request, params }) => {
			const { id } = await find(request, params.id);
			await cancelBatch(parts, connection, id);
			return find(request, id);
		});
}

interface Row {
	batch: BatchRecord;
	key: string | null;
	filename: string | null;
	output: string | null;
	error: string | null;
}

const PROBLEMS_SHOWN_MAX = 20;

/** Returns batches older than the batch `after`, newest first; or only the batch with the requested id. */
async function readBatches(
	statements: Statements,
	accountId: string,
	wanted: { id: string | null; after: string | null; asked: number; language: Language },
) {
	const rows = await statements<Row>`
		select batch_fields(b) as batch, k.name as key, i.filename, o.id as output, e.id as error from batch b
		left join api_key k on k.id = b.key_id
		left join stored_file i on i.id = b.input_file_id and i.state = 'ready'
		left join stored_file o on o.id = b.output_file_id and o.state = 'ready'
		left join stored_file e on e.id = b.error_file_id and e.state = 'ready'
		where b.account_id = ${accountId} and (${wanted.id}::text is null or b.id = ${wanted.id})
			and (${wanted.after}::text is null or b.id < ${wanted.after})
		order by b.id desc limit ${wanted.asked}`;
	return rows.map((row) => viewOf(row, wanted.language));
}

function viewOf({ batch: { errors, paused, ...batch }, key, filename, output, error }: Row, language: Language) {
	return {
		...batch,
		keyName: key,
		filename,
		endedAtMs: batch.completedAtMs ?? batch.failedAtMs ?? batch.expiredAtMs ?? batch.cancelledAtMs,
		paused: paused === null ? null : pausedIn(language, paused),
		problems: (errors ?? [])
			.slice(0, PROBLEMS_SHOWN_MAX)
			.map((problem) => ({
				...{ code: problem.code, param: problem.param, line: problem.line },
				message: translate(language, problem.text ?? { id: problem.message }),
			})),
		/** Ids of result files are set from the batch's end until the files are deleted. */
		outputFileId: output,
		errorFileId: error,
	};
}

function pausedIn(language: Language, { code, message }: BatchPause): string {
	const german: Readonly<Record<string, string>> = pauses;
	return language === ENGLISH || !Object.hasOwn(german, code) ? message : (german[code] ?? message);
}

/*
 * Pages get batches and files by calls to a gateway, authorized by a key of the account. The console cannot read the
 * files itself: it has neither their encryption keys nor their storage.
 */

/** Largest input file of a page. Larger files need an SDK or `tollgate batch run`, which stream them. */
export const BATCH_INPUT_BYTES_MAX = 32 * 1024 * 1024;
const BATCH_FILE = /^\/api\/console\/batch-files\/(file_[0-9a-f]{32})$/;

export const batchFileId = (pathname: string): string | undefined => BATCH_FILE.exec(pathname)?.[1];

/** Identifies one attempt to start a batch; retries send the same token. */
const TOKEN = /^[A-Za-z0-9-]{16,64}$/;

/**
 * POST /api/console/batch-start?key=…&endpoint=…&filename=…&token=…, with the lines as body. A retry with the same key
 * and token returns the first attempt's batch, so its lines are charged once.
 */
export async function startBatch(
	parts: Parts<"statements" | "limiter" | "gateways" | "sessions">,
	connection: Connection,
) {
	const { request } = connection;
	const allowed = parts.sessions.allow(request, "requests.send");
	const query = new URL(request.url).searchParams;
	const endpoint = BATCH_ENDPOINTS.find((path) => path === query.get("endpoint"));
	if (endpoint === undefined)
		throw new ConsoleError("invalid_request", "There is no such endpoint.", { param: "endpoint" });
	const keyId = query.get("key") ?? "";
	const keyDigest = await usableKeyDigest(parts, allowed, keyId);
	const token = query.get("token") ?? crypto.randomUUID();
	if (!TOKEN.test(token))
		throw new ConsoleError("invalid_request", "The token must be 16 to 64 letters, digits and dashes.", {
			param: "token",
		});
	const begun = () => parts.statements<{ id: string }>`
		select id from batch where key_id = ${keyId} and idempotency_key = ${token}`;
	const [before] = await begun();
	if (before !== undefined) return Response.json(before);
	connection.setIdleTimeout(0);
	try {
		const from = { owner: allowed.accountId, bytesMax: BATCH_INPUT_BYTES_MAX };
		const { id } = await parts.limiter.withBytes(connection, from, async (bytes) => {
			const form = new FormData();
			form.set("purpose", "batch");
			form.set("file", new File([bytes], query.get("filename") ?? "batch.jsonl"));
			const sent = new Response(form);
			const contentType = sent.headers.get("content-type") ?? "";
			const upload = { keyDigest, path: "/v1/files", contentType, body: await sent.arrayBuffer() };
			return askGateway<{ id: string }>(parts, connection, upload);
		});
		const body = JSON.stringify({ input_file_id: id, endpoint, completion_window: "24h" });
		const asked = { keyDigest, path: "/v1/batches", body, idempotencyKey: token };
		return Response.json(await askGateway(parts, connection, asked));
	} catch (error) {
		// A concurrent request with the same token uploaded another file and may have started the batch.
		const [earlier] = error instanceof Fault && error.code === "idempotency_mismatch" ? await begun() : [];
		if (earlier === undefined) throw error;
		return Response.json(earlier);
	} finally {
		connection.setIdleTimeout(IDLE_TIMEOUT_S);
	}
}

export async function downloadBatchFile(
	parts: Parts<"statements" | "gateways" | "sessions">,
	connection: Connection,
	id: string,
): Promise<Response> {
	const { accountId } = parts.sessions.allow(connection.request, "requests.send");
	const answer = await send(parts, connection, {
		keyDigest: await digestOfAny(parts, accountId),
		method: "GET",
		path: `/v1/files/${id}/content`,
	});
	if (!answer.ok) throw await faultOf(answer);
	const headers = new Headers({ "content-type": "application/octet-stream" });
	for (const name of ["content-length", "content-disposition"]) {
		const value = answer.headers.get(name);
		if (value !== null) headers.set(name, value);
	}
	connection.setIdleTimeout(STREAM_TIMEOUT_S);
	const bytes = answer.body && forwardBody(answer.body, () => connection.setIdleTimeout(IDLE_TIMEOUT_S));
	return new Response(bytes, { headers });
}

async function cancelBatch(
	parts: Parts<"statements" | "gateways" | "sessions">,
	connection: Connection,
	id: string,
): Promise<void> {
	const keyDigest = await digestOfAny(parts, parts.sessions.account(connection.request).accountId);
	await askGateway(parts, connection, { keyDigest, path: `/v1/batches/${id}/cancel`, body: "{}" });
}

/**
 * Returns the digest of any key of the account, since all its keys share files and batches. Prefers an active key in an
 * active project. Fault `conflict` if the account has no key.
 */
async function digestOfAny(parts: Parts<"statements">, accountId: string): Promise<KeyDigest> {
	const [key] = await parts.statements<{ digest: KeyDigest }>`
		select k.digest from api_key k left join project p on p.id = k.project_id where k.account_id = ${accountId}
		order by k.state = 'active' and not k.reads_only and (k.expires_at is null or k.expires_at > clock_timestamp())
			and p.state is distinct from 'archived' desc, k.id limit 1`;
	if (key === undefined)
		throw new ConsoleError("conflict", "Files require an API key of this account. Create one first.");
	return key.digest;
}

interface Asked {
	readonly keyDigest: KeyDigest;
	readonly method?: "GET" | "POST";
	readonly path: string;
	readonly contentType?: string;
	readonly body?: string | ArrayBuffer;
	readonly idempotencyKey?: string;
}

async function askGateway<T>(parts: Parts<"gateways">, connection: Connection, asked: Asked): Promise<T> {
	const answer = await send(parts, connection, asked);
	if (!answer.ok) throw await faultOf(answer);
	return (await answer.json()) as T;
}

function send(parts: Parts<"gateways">, { request, address }: Connection, asked: Asked): Promise<Response> {
	const { keyDigest, method = "POST", path, contentType = "application/json", body = null, idempotencyKey } = asked;
	const leave = new AbortController();
	request.signal.addEventListener("abort", () => leave.abort(), { once: true });
	const bytes = typeof body === "string" ? (new TextEncoder().encode(body).buffer as ArrayBuffer) : body;
	return parts.gateways.send({
		...{ keyDigest, method, path, contentType, accept: "*/*", body: bytes, address },
		language: requestLanguage(request.headers),
		...(idempotencyKey === undefined ? {} : { idempotencyKey }),
		signal: leave.signal,
	});
}

async function faultOf(answer: Response): Promise<Fault> {
	const { error } = (await answer.json()) as { error: { code: FaultCode; message: string; param: string | null } };
	return new Fault(error.code, error.message, { param: error.param });
}
