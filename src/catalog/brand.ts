/** The name and look of the service: `brand:` of `tollgate.yaml`. Null means the default. */
export interface Brand {
	readonly name: string | null;
	/** Path of the logo's file: absolute, or relative to the catalogue's folder. */
	readonly logo: string | null;
	/** `#rrggbb`; lighter and darker shades are derived from it. */
	readonly accent: string | null;
	/** First line of the landing page, and the sentence below it. */
	readonly headline: string | null;
	readonly lead: string | null;
	/** `mailto:` or `https:`. */
	readonly support: string | null;
	readonly terms: Terms | null;
	readonly seller: Seller | null;
	readonly privacy: string | null;
	readonly imprint: string | null;
}

/** Terms that people accept before they use the service. */
export interface Terms {
	readonly url: string;
	/** Version of the terms; people who accepted another one must accept again. */
	readonly version: string;
}

/** Seller's details for receipts; missing fields are empty. */
export interface Seller {
	readonly company: string;
	readonly address: string;
	readonly vatId: string;
}

export const PLAIN_BRAND: Brand = Object.freeze({
	name: null,
	logo: null,
	accent: null,
	headline: null,
	lead: null,
	support: null,
	terms: null,
	seller: null,
	privacy: null,
	imprint: null,
});
