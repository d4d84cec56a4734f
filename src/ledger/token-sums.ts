export interface TokenSums {
	readonly promptTokens: number;
	readonly cachedTokens: number;
	readonly completionTokens: number;
	readonly reasoningTokens: number;
}

/** Sums of columns as PostgreSQL returns them. */
export interface TokenSumColumns {
	readonly prompt_tokens: string;
	readonly cached_tokens: string;
	readonly completion_tokens: string;
	readonly reasoning_tokens: string;
}

export function tokenSumsOf(row: TokenSumColumns): TokenSums {
	return {
		promptTokens: Number(row.prompt_tokens),
		cachedTokens: Number(row.cached_tokens),
		completionTokens: Number(row.completion_tokens),
		reasoningTokens: Number(row.reasoning_tokens),
	};
}
