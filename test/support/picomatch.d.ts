// The one form of picomatch that the tests use.
declare module "picomatch" {
  export default function picomatch(
    glob: string,
    options: { readonly dot: boolean; readonly nonegate: boolean },
  ): (path: string) => boolean;
}
