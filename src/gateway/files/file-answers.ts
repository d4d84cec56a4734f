import type { Clock } from "../../base/clock.ts";
import { createFairPool, createFairQueue, ownShareFault } from "../../base/fair-pool.ts";
import { Fault } from "../../base/fault.ts";
import { forwardBody } from "../../base/passed-body.ts";
import type { Catalog } from "../../catalog/catalog.ts";
import type { FilePurpose, FileRecord } from "../../files/file-record.ts";
import type { ByteRange } from "../../files/file-transfer.ts";
import type { Files } from "../../files/files.ts";
import { checkAccess } from "../../keys/access.ts";
import type { BodyReads } from "../body/body-reads.ts";
import { IDLE_TIMEOUT_S, STREAM_TIMEOUT_S } from "../connection.ts";
import { errorResponse } from "../error-body.ts";
import { queryDatabase } from "../lookups/ask-database.ts";
import { pageOf, type UnmeteredCall } from "../unmetered-answer.ts";
import { openUploadForm } from "./upload-form.ts";

/** Limits of concurrent transfers. An upload takes up to 6 MB of memory, a download up to 1 MB. */
const UPLOADS_MAX = 32;
const UPLOADS_SHARE = 1 / 8;
/** Uploads that wait because their account already has its share of uploads. Their bodies are not read yet. */
const UPLOADS_WAITING_MAX = 256;
const UPLOAD_WAIT_MS_MAX = 10_000;
const DOWNLOADS_MAX = 64;
const DOWNLOADS_SHARE = 1 / 8;
/** Maximum rows per page. A larger `limit` is reduced to it and the answer has `has_more`. */
const PAGE_ROWS_MAX = 1_000;
const ID_CHARS_MAX = 64;
const FORM_BYTES_MAX = 64 * 1024;
const FILENAME_CHARS_MAX = 200;
const LIFETIME_S_MIN = 3600;
const LIFETIME_S_MAX = 30 * 24 * 3600;

/** Responses of /v1/files, the inputs and outputs of batches. All keys of an account see its files. */
export function createFileAnswers(deps: {
	files: Files;
	catalog: Pick<Catalog, "current" | "limits">;
	clock: Clock;
	bodyReads: BodyReads;
}) {
	const { files, clock } = deps;
	const uploads = createFairPool({ size: () => UPLOADS_MAX, share: () => UPLOADS_SHARE, allYield: true });
	const uploadTurns = createFairQueue(deps, {
		places: Number.POSITIVE_INFINITY,
		ownMax: UPLOADS_MAX * UPLOADS_SHARE,
		waitingMax: UPLOADS_WAITING_MAX,
		waitMsMax: UPLOAD_WAIT_MS_MAX,
		full: ownShareFault,
	});
	const downloads = createFairPool({ size: () => DOWNLOADS_MAX, share: () => DOWNLOADS_SHARE, allYield: true });

	/** Refuses uploads if no model supports batches; existing files stay readable. */
	function checkOffered(): void {
		for (const model of deps.catalog.current().models.values()) if (model.batch !== undefined) return;
		throw new Fault("service_unavailable", "Batches and their files are not available: no model supports them.");
	}

	/** The file whose id is in the URL. Faults: not_found; service_unavailable without file storage. */
	async function find(accountId: string, url: string): Promise<FileRecord> {
		const id = new URL(url).pathname.split("/")[3] ?? "";
		const record = id.length > ID_CHARS_MAX ? undefined : await queryDatabase(() => files.find(accountId, id));
		if (record !== undefined) return record;
		checkOffered();
		throw new Fault("not_found", "This account has no file with this ID, or it has expired.", { param: "file_id" });
	}

	async function receive({ connection, key, checkAgain }: UnmeteredCall): Promise<FileRecord> {
		const bytesMax = deps.catalog.limits().fileBytesMax + FORM_BYTES_MAX;
		const form = openUploadForm(connection.request, { clock, bytesMax });
		const leave = uploads.enter(key.accountId, form);
		const body = { slot: -1, letGo: form.giveUp };
		deps.bodyReads.lasts(body);
		try {
			const { filename } = await form.file();
			// Form fields before the file are checked first, so that a wrong one is refused before the file is read.
			if (form.known().has("purpose")) checkPurpose(form.known());
			const owner = { accountId: key.accountId, keyId: key.id };
			const file = { purpose: "batch", filename: plainName(filename) } as const;
			return await files.create(owner, file, form.bytes(), async (bytes) => {
				const fields = await form.fields();
				checkPurpose(fields);
				if (bytes === 0) throw new Fault("invalid_request", "`file` is empty.", { param: "file" });
				const lifetimeS = lifetimeOf(fields);
				await checkAgain();
				return lifetimeS === undefined ? {} : { lifetimeMs: lifetimeS * 1000 };
			});
		} finally {
			leave();
			deps.bodyReads.leaves(body);
			form.close();
		}
	}

	return {
		/** Accepts `file`, `purpose`, `expires_after[anchor]` and `expires_after[seconds]`, in any order. */
		async upload(call: UnmeteredCall) {
			const { connection, key } = call;
			checkOffered();
			checkAccess(key, clock.wallMs());
			connection.setIdleTimeout(STREAM_TIMEOUT_S);
			try {
				return fileObject(await queryDatabase(() => uploadTurns.run(key.accountId, () => receive(call))));
			} finally {
				connection.setIdleTimeout(IDLE_TIMEOUT_S);
			}
		},
		async list({ url, key }: UnmeteredCall) {
			const query = listQuery(new URL(url).searchParams);
			const rows = await queryDatabase(() => files.list(key.accountId, { ...query, limit: query.limit + 1 }));
			if (rows.length === 0) checkOffered();
			return pageOf(rows.map(fileObject), query.limit);
		},
		retrieve: async ({ url, key }: UnmeteredCall) => fileObject(await find(key.accountId, url)),
		async remove({ url, key }: UnmeteredCall) {
			const { id } = await find(key.accountId, url);
			await queryDatabase(() => files.remove(key.accountId, id));
			return { id, object: "file", deleted: true };
		},
		async content({ connection, url, key, requestId }: UnmeteredCall) {
			const record = await find(key.accountId, url);
			const { headers } = connection.request;
			const etag = `"${record.id}"`;
			// True if the partial copy that the client resumes is of this file. A file never changes, so its id is its ETag.
			const isSame = (headers.get("if-range") ?? etag) === etag;
			const range = rangeOf(isSame ? headers.get("range") : null, record.bytes);
			if (range === "none") {
				const fault = new Fault("range_not_satisfiable", "The file has no bytes in the requested range.");
				const refused = errorResponse(fault, requestId);
				refused.headers.set("content-range", `bytes */${record.bytes}`);
				return refused;
			}
			const { start, end } = range ?? { start: 0, end: record.bytes };
			// Opened before a download slot is occupied: it throws if the storage is not connected, and reads nothing yet.
			const bytes = files.read(record, { start, end });
			const startedMs = clock.monotonicMs();
			const ended = new AbortController();
			const leave = downloads.enter(key.accountId, { pace: () => startedMs, giveUp: (why) => ended.abort(why) });
			// Disconnects a client that stops reading the download.
			connection.setIdleTimeout(STREAM_TIMEOUT_S);
			const leaveNow = () => {
				connection.setIdleTimeout(IDLE_TIMEOUT_S);
				leave();
			};
			const body = forwardBody(bytes, leaveNow, ended.signal);
			const part = range === null ? null : { "content-range": `bytes ${start}-${end - 1}/${record.bytes}` };
			return new Response(body, {
				status: part === null ? 200 : 206,
				headers: {
					"content-type": "application/octet-stream",
					"content-length": String(end - start),
					"content-disposition": dispositionOf(record.filename),
					"accept-ranges": "bytes",
					...part,
					etag,
					"cache-control": "no-store",
					"x-content-type-options": "nosniff",
					"x-request-id": requestId,
				},
			});
		},
	};
}

function listQuery(parameters: URLSearchParams) {
	const limit = parameters.get("limit") ?? String(PAGE_ROWS_MAX);
	if (!/^[1-9]\d*$/.test(limit))
		throw new Fault("invalid_request", "`limit` must be a positive integer.", { param: "limit" });
	const order = parameters.get("order") ?? "desc";
	if (order !== "asc" && order !== "desc")
		throw new Fault("invalid_request", "`order` must be `asc` or `desc`.", { param: "order" });
	const after = parameters.get("after");
	if (after !== null && !/^[\w-]{1,64}$/.test(after))
		throw new Fault("invalid_request", "`after` must be the ID of a file.", { param: "after" });
	return {
		// Not checked: an unknown purpose matches no file.
		purpose: parameters.get("purpose") as FilePurpose | null,
		after,
		newestFirst: order === "desc",
		limit: Math.min(Number(limit), PAGE_ROWS_MAX),
	};
}

/** `content-disposition` with the file name in ASCII and in UTF-8 (RFC 6266). */
function dispositionOf(filename: string): string {
	const plain = filename.replace(/[^\w. -]/g, "_");
	const encoded = encodeURIComponent(filename.toWellFormed()).replace(
		/['()*]/g,
		(sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`,
	);
	return `attachment; filename="${plain}"; filename*=UTF-8''${encoded}`;
}

function fileObject(record: FileRecord) {
	return {
		id: record.id,
		object: "file",
		bytes: record.bytes,
		created_at: Math.floor(record.createdAtMs / 1000),
		expires_at: Math.floor(record.expiresAtMs / 1000),
		filename: record.filename,
		purpose: record.purpose,
		/** Deprecated in OpenAI's interface, but SDKs read the field. */
		status: "processed",
	};
}

/** Byte range that the header requests. null: the whole file, also for an unreadable header. "none": beyond the end. */
function rangeOf(header: string | null, bytes: number): ByteRange | null | "none" {
	const match = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(header?.replaceAll(" ", "") ?? "");
	if (match === null) return null;
	const [first = "", last = ""] = match.slice(1);
	if (first === "" && last === "") return null;
	const start = first === "" ? Math.max(0, bytes - Number(last)) : Number(first);
	const end = first === "" || last === "" ? bytes : Math.min(bytes, Number(last) + 1);
	if (last !== "" && first !== "" && Number(last) < Number(first)) return null;
	return start >= end ? "none" : { start, end };
}

function checkPurpose(fields: ReadonlyMap<string, string>): void {
	const purpose = fields.get("purpose");
	if (purpose === "batch") return;
	const problem = purpose === undefined ? "`purpose` is missing: it" : "`purpose`";
	throw new Fault("invalid_request", `${problem} must be \`batch\`. Files are for managed batches alone.`, {
		param: "purpose",
	});
}

/** The file's lifetime in seconds; undefined: the default. Fault invalid_request. */
function lifetimeOf(fields: ReadonlyMap<string, string>): number | undefined {
	const anchor = fields.get("expires_after[anchor]");
	const seconds = fields.get("expires_after[seconds]");
	if (anchor === undefined && seconds === undefined) return undefined;
	if (anchor !== "created_at") {
		throw new Fault("invalid_request", "`expires_after[anchor]` must be `created_at`.", {
			param: "expires_after[anchor]",
		});
	}
	const value = /^\d{1,9}$/.test(seconds ?? "") ? Number(seconds) : Number.NaN;
	if (value >= LIFETIME_S_MIN && value <= LIFETIME_S_MAX) return value;
	throw new Fault(
		"invalid_request",
		`\`expires_after[seconds]\` must be a whole number from ${LIFETIME_S_MIN} to ${LIFETIME_S_MAX}.`,
		{ param: "expires_after[seconds]" },
	);
}

function plainName(name: string): string {
	const plain = name
		.replace(/^.*[/\\]/s, "")
		.replace(/\p{C}/gu, "")
		.trim();
	return plain === "" ? "upload.jsonl" : [...plain].slice(0, FILENAME_CHARS_MAX).join("");
}
