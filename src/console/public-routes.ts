import { Elysia, t } from "elysia";
import { CARD_NANO_USD_MAX, TOP_UP_NANO_USD_MAX, TOP_UP_NANO_USD_MIN } from "../billing/top-ups.ts";
import { type Agreement, modelAtAgreedPrice, partsOfCard } from "../catalog/agreements.ts";
import type { RateCard, Rates } from "../catalog/model.ts";
import { rateCardHistory } from "../catalog/rate-cards.ts";
import { type CatalogViewer, isVisible } from "../catalog/visibility.ts";
import type { DeployedModel } from "../deployments/deployed-model.ts";
import type { DeploymentsView } from "../deployments/deployments.ts";
import { ACCOUNT_QUERY, type Parts } from "./console-deps.ts";
import { ConsoleError } from "./console-error.ts";
import type { SentMail } from "./mail/mailer.ts";
import { isOwnMachine } from "./sign-in/sign-in-link.ts";
import { createModelSpeeds } from "./usage/model-speed.ts";

export function publicRoutes(
	parts: Parts<"statements" | "clock" | "config" | "deployments" | "cards" | "mailer" | "sessions" | "origin">,
) {
	const { clock, config, deployments, mailer, sessions } = parts;
	const speeds = createModelSpeeds(parts);
	/** Returns the models that any account of this person may use, at the selected one's prices; else the public ones. */
	async function visibleModels(models: readonly DeployedModel[], request: Request) {
		const found = await sessions.of(request).findViewer?.();
		if (!found) return models.filter((model) => isVisible(model, null));
		const { viewer, membership } = found;
		const ids = [...viewer.memberships, ...(membership ? [membership] : [])].map(({ accountId }) => accountId);
		const accounts = await parts.statements<CatalogViewer & { agreements: readonly Agreement[] }>`
			select id, tags, agreements from account where id in (select jsonb_array_elements_text(${JSON.stringify(ids)}::text::jsonb))`;
		const selected = membership?.closed ? null : membership?.accountId;
		const agreements = accounts.find(({ id }) => id === selected)?.agreements ?? [];
		return models
			.filter((model) => isVisible(model, null) || accounts.some((account) => isVisible(model, account)))
			.map((model) => modelAtAgreedPrice(model, agreements, clock.wallMs()));
	}
	return new Elysia({ name: "console-public", prefix: "/public" })
		.get("/config", ({ request }) => ({
			serviceName: config.serviceName,
			production: config.production,
			/** True: credit and usage are sample data, which every page says. */
			demo: config.demo,
			publicUrl: parts.origin(),
			baseUrl: `${parts.origin()}/v1`,
			signUp: mailer.works,
			github: config.signIn.github !== null,
			google: config.signIn.google !== null,
			twoFactor: true,
			cardPayments: parts.cards !== undefined,
			topUpMinNanoUsd: TOP_UP_NANO_USD_MIN,
			topUpMaxNanoUsd: TOP_UP_NANO_USD_MAX,
			topUpByCardMaxNanoUsd: CARD_NANO_USD_MAX,
			refusalsKeptDays: config.retention.refusalDays,
			/** True if the request has a session cookie. Only `/me` tells whether the session is valid. */
			signedIn: /tollgate\.session_token=/.test(request.headers.get("cookie") ?? ""),
		}))
		.get(
			"/models",
			async ({ request }) => {
				const [deployed, measured] = await Promise.all([deployments.current(), speeds.current()]);
				const visible = await visibleModels(deployed.models, request);
				return {
					items: visible.map((model) => ({ ...modelView(model, deployed), speed: measured.get(model.id) ?? null })),
				};
			},
			ACCOUNT_QUERY,
		)
		.get(
			"/model",
			async ({ query, request }) => {
				const deployed = await deployments.current();
				const found = deployed.find(query.id);
				const [model] = await visibleModels(found === undefined ? [] : [found], request);
				if (model === undefined) throw new ConsoleError("model_not_found", "There is no such model.", { param: "id" });
				const history = await rateCardHistory(parts.statements, model.id);
				return {
					...modelView(model, deployed),
					speed: (await speeds.current()).get(model.id) ?? null,
					history: history.map((card) => ({
						id: card.id,
						version: card.version,
						storedAtMs: card.storedS * 1000,
						rates: publicRates(card),
					})),
				};
			},
			{ query: t.Object({ id: t.String({ maxLength: 200 }), account: t.Optional(t.String({ maxLength: 64 })) }) },
		)
		.get(
			"/outbox",
			({ query, request }): { items: SentMail[] } => {
				if (mailer.outbox === undefined || !isOwnMachine(sessions.of(request).connection))
					throw new ConsoleError("not_found", "There is no such page.");
				return { items: [...mailer.outbox(query.email)] };
			},
			{ query: t.Object({ email: t.String({ maxLength: 320 }) }) },
		);
}

function modelView(model: DeployedModel, deployed: DeploymentsView) {
	const replicas = deployed.replicas.filter((replica) => replica.modelId === model.id && !replica.draining);
	return {
		id: model.id,
		name: model.name,
		kind: model.kind,
		modes: [...model.modes],
		contextLength: model.contextLength,
		maxOutputTokens: model.maxOutputTokens,
		parameters: [...model.parameters],
		inputModalities: [...model.inputModalities],
		outputModalities: [...model.outputModalities],
		rates: publicRates(model.rateCard),
		rateCard: model.rateCard.id,
		/** True: rates that only the selected account has. */
		agreed: partsOfCard(model.rateCard.id)[1] !== null,
		/** First day (UTC) without the model. */
		retiresOn: model.retiresOn ?? null,
		status: deployed.connected(model.id) ? ("connected" as const) : ("unavailable" as const),
		replicas: { up: replicas.filter((replica) => replica.health !== "down").length, total: replicas.length },
	};
}

/** Copies the rates without the name of the rate card. */
export function publicRates({ input, cachedInput, output, request, image, audioSecond, search }: RateCard): Rates {
	return { input, cachedInput, output, request, image, audioSecond, search };
}
