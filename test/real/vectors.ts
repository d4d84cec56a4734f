import type OpenAI from "openai";
import { postJson, priceOf } from "../support/chat.ts";
import { type Checks, must, usageRowsOf } from "./world.ts";

export const VECTOR_CHECKS: Checks = {
	async "embeddings equal the server's, as numbers and base64, at the price of its count"(world) {
		if (!world.server.serves.includes("embeddings")) return undefined;
		const { client, accountId } = await world.customer();
		const input = ["the quick fox", "and the lazy dog"];
		let cost = 0;
		for (const encoding_format of ["float", "base64"] as const) {
			const told = async (sdk: OpenAI, model: string) => {
				const { data, usage } = await sdk.embeddings.create({ model, input, encoding_format });
				return { vectors: data.map(({ embedding }) => embedding), tokens: usage.prompt_tokens };
			};
			const [direct, ours] = [await told(world.direct, "tiny"), await told(client, "tiny-vectors")];
			must(JSON.stringify(ours) === JSON.stringify(direct), `others as ${encoding_format}`);
			must(ours.vectors.length === 2, `${ours.vectors.length} vectors`);
			cost += priceOf(ours.tokens, 0);
		}
		const { spent } = await usageRowsOf(world, accountId);
		must(spent === cost, `charged ${spent}, not ${cost}`);
		return "2 vectors, twice";
	},

	async "a ranking equals the server's, at the price of its count"(world) {
		if (!world.server.serves.includes("rankings")) return undefined;
		const { secret, accountId } = await world.customer();
		const told = async (url: string, model: string) => {
			const body = { model, query: "the fox", documents: ["a lazy dog", "the quick fox", "a fox"] };
			const response = await postJson(`${url}/rerank`, secret, body);
			must(response.ok, await response.clone().text());
			const { results, usage } = (await response.json()) as Ranking;
			return { ranks: results.map((one) => [one.index, one.relevance_score]), tokens: usage.prompt_tokens };
		};
		const direct = await told(world.direct.baseURL, "tiny");
		const ours = await told(`${world.service.url}/v1`, "tiny-rankings");
		must(JSON.stringify(ours) === JSON.stringify(direct), `${JSON.stringify(ours)}, not ${JSON.stringify(direct)}`);
		const { spent } = await usageRowsOf(world, accountId);
		must(spent === priceOf(ours.tokens, 0), `charged ${spent}`);
		return `${ours.ranks.map(([index]) => index).join(", ")}, ${ours.tokens} tokens`;
	},
};

interface Ranking {
	readonly results: readonly { readonly index: number; readonly relevance_score: number }[];
	readonly usage: { readonly prompt_tokens: number };
}
