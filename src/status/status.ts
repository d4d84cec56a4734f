import type { Clock } from "../base/clock.ts";
import { newRequestId } from "../base/id.ts";
import { requestLanguage } from "../base/language.ts";
import type { Log } from "../base/log.ts";
import { VERSION } from "../base/version.ts";
import type { Catalog } from "../catalog/catalog.ts";
import type { CatalogSnapshot, ModelKind } from "../catalog/model.ts";
import { visibleCatalog } from "../catalog/visibility.ts";
import type { Statements } from "../db/statements.ts";
import type { Upstreams } from "../upstream/upstreams.ts";
import type { ServiceState, StatusAnswer } from "./status-answer.ts";
import { createStatusHistory, createStatusStore, daySinceEpoch } from "./status-history.ts";
import { historyAnswer, statusLevels } from "./status-levels.ts";
import { STATUS_PAGE_POLICY, statusPage } from "./status-page.ts";

type Present = Omit<StatusAnswer, "history">;

/** The public status and its history, answered from memory. */
export interface Status {
	respond(request: Request): Response;
	stop(): Promise<void>;
}

/** Time for which a response is reused, because it is public, and large if there are many models. */
const BODY_KEPT_MS = 1_000;

interface Bodies {
	readonly present: string;
	readonly history: unknown;
	readonly madeAtMs: number;
	readonly made: Map<string, Uint8Array<ArrayBuffer> | string>;
}

export function createStatus(deps: {
	readonly statements: Statements;
	readonly clock: Clock;
	readonly log: Log;
	readonly catalog: Pick<Catalog, "current">;
	readonly upstreams: Pick<Upstreams, "connected" | "replicas">;
	readonly admitting: () => boolean;
}): Status {
	const { statements, clock, log, catalog, upstreams } = deps;
	/** The page is public, so it excludes private models. */
	const shown = () => visibleCatalog(catalog.current(), null, 0);
	const look = () => statusLevels(shown(), upstreams.replicas(), deps.admitting());
	const history = createStatusHistory({ store: createStatusStore(statements), clock, log, look });
	let kept: Bodies | undefined;

	function bodies(present: Present): Bodies["made"] {
		const text = JSON.stringify([present.status, present.services, present.models]);
		const fresh = kept && clock.monotonicMs() - kept.madeAtMs < BODY_KEPT_MS;
		if (!kept || !fresh || kept.present !== text || kept.history !== history.view())
			kept = { present: text, history: history.view(), madeAtMs: clock.monotonicMs(), made: new Map() };
		return kept.made;
	}

	return {
		respond(request) {
			const snapshot = shown();
			const nowMs = clock.wallMs();
			const present = presentStatus(snapshot, upstreams.connected, nowMs);
			const answer = () => ({ ...present, history: historyAnswer(history.view(), snapshot, daySinceEpoch(nowMs)) });
			return statusResponse(request.headers, bodies(present), answer);
		},
		stop: history.stop,
	};
}

function presentStatus(snapshot: CatalogSnapshot, connected: (modelId: string) => boolean, nowMs: number): Present {
	const all = [...snapshot.models.values()];
	const up = all.filter((model) => connected(model.id));
	const of = (found: boolean): ServiceState => (found ? "connected" : "unavailable");
	const ofKind = (kind: ModelKind) => of(up.some((model) => model.kind === kind));
	return {
		object: "status",
		status: up.length === all.length && up.length > 0 ? "operational" : up.length > 0 ? "degraded" : "unavailable",
		version: VERSION,
		checked_at: new Date(nowMs).toISOString(),
		services: {
			chat: of(up.some((model) => model.modes.has("chat"))),
			completions: of(up.some((model) => model.modes.has("completions"))),
			embeddings: ofKind("embedding"),
			transcription: ofKind("transcription"),
			image_generation: ofKind("image"),
			rerank: ofKind("rerank"),
			batch: of(up.some((model) => model.batch !== undefined)),
		},
		models: all.map((model) => ({ id: model.id, name: model.name, kind: model.kind, status: of(connected(model.id)) })),
	};
}

/** Sends JSON, or HTML if the client prefers HTML, as browsers do. */
function statusResponse(asked: Headers, made: Bodies["made"], answer: () => StatusAnswer): Response {
	const html = prefersHtml(asked.get("accept") ?? "");
	const language = requestLanguage(asked);
	const packed = /\bgzip\b/.test(asked.get("accept-encoding") ?? "");
	const headers: Record<string, string> = {
		"cache-control": "no-store",
		vary: "accept, accept-encoding, accept-language, cookie",
		"x-content-type-options": "nosniff",
		"x-request-id": newRequestId().requestId,
		"content-type": html ? "text/html; charset=utf-8" : "application/json",
	};
	if (packed) headers["content-encoding"] = "gzip";
	if (html) {
		headers["content-security-policy"] = STATUS_PAGE_POLICY;
		headers["referrer-policy"] = "no-referrer";
		headers["x-frame-options"] = "DENY";
		headers["content-language"] = language;
	}
	const form = `${html ? language : "json"}${packed ? " gzip" : ""}`;
	let body = made.get(form);
	if (body === undefined) {
		const text = html ? statusPage(answer(), language) : JSON.stringify(answer());
		body = packed ? Bun.gzipSync(text) : text;
		made.set(form, body);
	}
	return new Response(body, { headers });
}

/** True if `text/html` comes first. Programs name JSON, or accept any type. */
function prefersHtml(accept: string): boolean {
	const types = accept.toLowerCase();
	const [html, json] = [types.indexOf("text/html"), types.indexOf("application/json")];
	return html >= 0 && (json < 0 || html < json);
}
