import type { ShownBrand } from "../console/views.ts";

/** Defaults; the page's document has the brand in force. */
const OURS: ShownBrand = {
	name: "Tollgate",
	logoUrl: null,
	palette: null,
	headline: null,
	lead: null,
	support: null,
	terms: null,
	privacy: null,
	imprint: null,
};

/** The service's name and colour. They are in the document, so that they are known before anything is drawn. */
export const brand: ShownBrand = { ...OURS, ...inDocument() };

function inDocument(): Partial<ShownBrand> {
	const meta = globalThis.document?.querySelector<HTMLMetaElement>('meta[name="brand"]');
	return meta ? JSON.parse(meta.content) : {};
}
