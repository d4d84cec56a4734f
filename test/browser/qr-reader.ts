import jsQR from "jsqr";
import type { Locator } from "playwright-core";

/** Reads a QR code from a drawn element; null if there is no code. */
export async function readQrCode(shown: Locator): Promise<string | null> {
	const png = [...(await shown.screenshot())];
	const image = await shown.page().evaluate(async (bytes) => {
		const bitmap = await createImageBitmap(new Blob([new Uint8Array(bytes)], { type: "image/png" }));
		const canvas = new OffscreenCanvas(bitmap.width, bitmap.height);
		const context = canvas.getContext("2d");
		if (context === null) throw new Error("no canvas");
		context.drawImage(bitmap, 0, 0);
		const { data, width, height } = context.getImageData(0, 0, bitmap.width, bitmap.height);
		return { pixels: [...data], width, height };
	}, png);
	return jsQR(new Uint8ClampedArray(image.pixels), image.width, image.height)?.data ?? null;
}
