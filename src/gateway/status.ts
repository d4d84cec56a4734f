import type { CatalogSnapshot, ModelKind } from "../catalog/model.ts";
import { statusPage } from "./status-page.ts";

type Connected = "connected" | "unavailable";

/** What GET /status says: each model and each kind of service, connected or not. Public: names nothing else. */
export interface StatusAnswer {
	readonly object: "status";
	/** operational: everything is connected; degraded: something is not; unavailable: nothing is. */
	readonly status: "operational" | "degraded" | "unavailable";
	/** ISO 8601. */
	readonly checked_at: string;
	readonly services: Readonly<Record<ServiceName, Connected>>;
	readonly models: readonly {
		readonly id: string;
		readonly name: string;
		readonly kind: string;
		readonly status: Connected;
	}[];
}

export const SERVICE_NAMES = [
	"chat",
	"completions",
	"embeddings",
	"transcription",
	"image_generation",
	"rerank",
	"batch",
] as const;
export type ServiceName = (typeof SERVICE_NAMES)[number];

export function statusAnswer(
	snapshot: CatalogSnapshot,
	connected: (modelId: string) => boolean,
	nowMs: number,
): StatusAnswer {
	const all = [...snapshot.models.values()];
	const up = all.filter((model) => connected(model.id));
	const of = (found: boolean): Connected => (found ? "connected" : "unavailable");
	const ofKind = (kind: ModelKind) => of(up.some((model) => model.kind === kind));
	return {
		object: "status",
		status: up.length === all.length && up.length > 0 ? "operational" : up.length > 0 ? "degraded" : "unavailable",
		checked_at: new Date(nowMs).toISOString(),
		services: {
			chat: of(up.some((model) => model.modes.has("chat"))),
			completions: of(up.some((model) => model.modes.has("completions"))),
			embeddings: ofKind("embedding"),
			transcription: ofKind("transcription"),
			image_generation: ofKind("image"),
			rerank: ofKind("rerank"),
			batch: "unavailable",
		},
		models: all.map((model) => ({
			id: model.id,
			name: model.name,
			kind: model.kind,
			status: of(connected(model.id)),
		})),
	};
}

/** JSON unless the client likes HTML better, as browsers do. */
export function statusResponse(answer: StatusAnswer, accept: string | null, requestId: string): Response {
	const common = {
		"cache-control": "no-store",
		vary: "accept",
		"x-content-type-options": "nosniff",
		"x-request-id": requestId,
	};
	if (!prefersHtml(accept ?? ""))
		return new Response(JSON.stringify(answer), { headers: { ...common, "content-type": "application/json" } });
	const { html, contentSecurityPolicy } = statusPage(answer);
	return new Response(html, {
		headers: {
			...common,
			"content-type": "text/html; charset=utf-8",
			"content-security-policy": contentSecurityPolicy,
			"referrer-policy": "no-referrer",
			"x-frame-options": "DENY",
		},
	});
}

function prefersHtml(accept: string): boolean {
	return weightOf(accept, "text/html") > weightOf(accept, "application/json");
}

/** The `q` of a media type that is named, else of a range that is not: only what is named shows a preference. */
function weightOf(accept: string, type: string): number {
	for (const part of accept.slice(0, 1_024).split(",")) {
		const [name, ...parameters] = part.split(";").map((text) => text.trim().toLowerCase());
		if (name !== type) continue;
		const quality = parameters.find((parameter) => parameter.startsWith("q="));
		const weight = quality === undefined ? 1 : Number(quality.slice(2));
		return Number.isFinite(weight) ? weight : 0;
	}
	return 0;
}
