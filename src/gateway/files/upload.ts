import type { Clock } from "../../base/clock.ts";
import { Fault } from "../../base/fault.ts";
import type { ServiceLimits } from "../../catalog/service-limits.ts";
import type { FileOwner, FileRecord } from "../../files/file-record.ts";
import type { Files } from "../../files/files.ts";
import type { BodyReads, LastingBody } from "../body/body-reads.ts";
import { openUploadForm, type UploadForm } from "./upload-form.ts";

const FORM_BYTES_MAX = 64 * 1024;
const FILENAME_CHARS_MAX = 200;
const LIFETIME_S_MIN = 3600;
const LIFETIME_S_MAX = 30 * 24 * 3600;

export interface UploadDeps {
	readonly files: Pick<Files, "create">;
	readonly clock: Clock;
	readonly bodyReads: Pick<BodyReads, "lasts" | "leaves">;
	limits(): Pick<ServiceLimits, "fileBytesMax">;
}

export interface Upload {
	readonly owner: FileOwner;
	readonly request: Request;
	/** Rejects if the key may no longer make files. */
	checkAgain(): Promise<void>;
}

/** POST /v1/files: `file`, `purpose`, `expires_after[anchor]` and `expires_after[seconds]`, in any order. */
export async function receiveUpload(deps: UploadDeps, upload: Upload): Promise<FileRecord> {
	const { clock } = deps;
	const form = openUploadForm(upload.request, { clock, bytesMax: deps.limits().fileBytesMax + FORM_BYTES_MAX });
	const body: LastingBody = { slot: -1, letGo: form.giveUp };
	deps.bodyReads.lasts(body);
	try {
		return await receive(deps, upload, form);
	} finally {
		deps.bodyReads.leaves(body);
		form.close();
	}
}

async function receive({ files }: UploadDeps, upload: Upload, form: UploadForm): Promise<FileRecord> {
	const { filename } = await form.file();
	// Fields that are wrong already are refused before the file arrives.
	if (form.known().has("purpose")) checkPurpose(form.known());
	const file = { purpose: "batch", filename: plainName(filename) } as const;
	return files.create(upload.owner, file, form.bytes(), async (bytes) => {
		const fields = await form.fields();
		checkPurpose(fields);
		if (bytes === 0) throw new Fault("invalid_request", "`file` is empty.", { param: "file" });
		const lifetimeS = lifetimeOf(fields);
		await upload.checkAgain();
		return lifetimeS === undefined ? {} : { lifetimeMs: lifetimeS * 1000 };
	});
}

function checkPurpose(fields: ReadonlyMap<string, string>): void {
	const purpose = fields.get("purpose");
	if (purpose === "batch") return;
	const problem = purpose === undefined ? "`purpose` is missing: it" : "`purpose`";
	throw new Fault("invalid_request", `${problem} must be \`batch\`. Files are for managed batches alone.`, {
		param: "purpose",
	});
}

/** Seconds; undefined by default. Fault invalid_request. */
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
