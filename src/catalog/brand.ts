/** The name and look of the service: `brand:` of `tollgate.yaml`. Null means the default. */
export interface Brand {
	readonly name: string | null;
	/** Path of the logo's file: absolute, or relative to the folder of `tollgate.yaml`. */
	readonly logo: string | null;
	/** `#rrggbb`; the pages derive lighter and darker shades. */
	readonly accent: string | null;
	/** First line of the landing page, and the sentence below it. */
	readonly headline: string | null;
	readonly lead: string | null;
	/** Link of the form `mailto:` or `https:`. */
	readonly support: string | null;
	readonly terms: Terms | null;
	readonly seller: SellerDetails | null;
	readonly privacy: string | null;
	readonly imprint: string | null;
}

/** Terms that people accept before they use the service. */
export interface Terms {
	readonly url: string;
	/** Version of the terms. People who accepted another version must accept again. */
	readonly version: string;
}

export interface SellerDetails {
	readonly company: string;
	readonly address: string;
	readonly vatId: string;
}

export const DEFAULT_BRAND: Brand = Object.freeze({
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
