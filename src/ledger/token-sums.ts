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
