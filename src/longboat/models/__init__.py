"""The language-model seam and its adapters. Adapters are imported when first used: they are heavy."""
