/** Under whose name the service is sold: `brand:` of `tollgate.yaml`. What is null is as it comes. */
export interface Brand {
	readonly name: string | null;
	/** A file, as the catalogue names it: absolute, or from the catalogue's own folder. */
	readonly logo: string | null;
	/** `#rrggbb`. Shades of it that can be read are derived. */
	readonly accent: string | null;
	/** The first line of the landing page, and the sentence below. */
	readonly headline: string | null;
	readonly lead: string | null;
	/** `mailto:` or `https:`. */
	readonly support: string | null;
	readonly terms: Terms | null;
	/** Who sells, on receipts and statements. */
	readonly seller: Seller | null;
	readonly privacy: string | null;
	readonly imprint: string | null;
}

/** What people agree to before they use the service. */
export interface Terms {
	readonly url: string;
	/** Whoever agreed to another version is asked again. */
	readonly version: string;
}

/** What is not given is empty. */
export interface Seller {
	readonly company: string;
	/** In lines. */
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
